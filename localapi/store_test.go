package localapi_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
)

func memoryStore(t *testing.T) storage.Storage {
	t.Helper()
	store := memory.New()
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return store
}

// withoutTags is a store that has just been opened: it has bytes and nothing else.
type withoutTags struct{ storage.Storage }

func (s withoutTags) List(ctx context.Context, prefix string, o storage.ListOptions) (storage.Page, error) {
	page, err := s.Storage.List(ctx, prefix, o)
	for i := range page.Records {
		page.Records[i].Tag = nil
	}
	return page, err
}

func (s withoutTags) Watch(ctx context.Context, prefix string, after int64) (storage.Watch, error) {
	w, err := s.Storage.Watch(ctx, prefix, after)
	return watchWithoutTags{w}, err
}

type watchWithoutTags struct{ storage.Watch }

func (w watchWithoutTags) Poll() ([]storage.Event, int64, error) {
	events, revision, err := w.Watch.Poll()
	for i := range events {
		events[i].Tag = nil
	}
	return events, revision, err
}

type object = runtime.Object

func newConfigMap() object     { return &corev1.ConfigMap{} }
func newConfigMapList() object { return &corev1.ConfigMapList{} }
