package source_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/ctrl/handler"
	"github.com/flyball-dev/flyball/manager/ctrl/source"
	"github.com/flyball-dev/flyball/reconcile/event"
)

// A source that cannot work ends its controller with the reason.
func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mgr, err := ctrl.NewManager(localapi.NewTest(t).RESTConfig(), ctrl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all, events := &handler.EnqueueRequestForObject{}, make(chan event.GenericEvent)
		shared := source.Channel(events, all)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- shared.Run(ctx, nil, func() {}) }()
		synctest.Wait()
		for want, s := range map[string]source.Source{
			"has no kind":               source.Kind[client.Object](mgr.GetCache(), &unstructured.Unstructured{}, all),
			"the handler has no func":   source.Kind[client.Object](mgr.GetCache(), configMaps(), nil),
			"the channel or":            source.Channel[client.Object](nil, all),
			"or the handler is nil":     source.Channel[client.Object](events, nil),
			"two controllers watch the": shared,
		} {
			if err := s.Run(t.Context(), nil, func() {}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(events) // The source may run again, as with another lease, and ends with its channel.
		if err := shared.Run(t.Context(), nil, func() {}); err != nil {
			t.Error(err)
		}
	})
}

func configMaps() client.Object {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	return u
}
