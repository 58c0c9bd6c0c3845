package client

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer"
)

// store is an informer of whatever representation, as the client reads it.
type store interface {
	get(key ObjectKey) (Object, bool)
	list(namespace string, sel labels.Selector) []Object
	byIndex(name, value string) ([]Object, error)
	addIndex(name string, f func(Object) ([]string, error)) error
	watermark(namespace string) string
	// history is as [informer.Informer].History.
	history(namespace string) int64
	waitForVersion(ctx context.Context, namespace, version string) error
	waitForSync(ctx context.Context) error
	hasSynced() bool
	release()
}

// stored is the store of an informer of T.
type stored[T Object] struct{ informer informer.Informer[T] }

func (s stored[T]) get(key ObjectKey) (Object, bool) {
	return s.informer.Get(key.Namespace, key.Name)
}

func (s stored[T]) list(namespace string, sel labels.Selector) []Object {
	return objects(s.informer.List(namespace, sel))
}

func (s stored[T]) byIndex(name, value string) ([]Object, error) {
	found, err := s.informer.ByIndex(name, value)
	return objects(found), err
}

func (s stored[T]) addIndex(name string, f func(Object) ([]string, error)) error {
	return s.informer.AddIndex(name, func(obj T) ([]string, error) { return f(obj) })
}

func (s stored[T]) watermark(namespace string) string {
	return s.informer.NamespaceResourceVersion(namespace)
}

func (s stored[T]) history(namespace string) int64 { return s.informer.History(namespace) }

func (s stored[T]) waitForVersion(ctx context.Context, namespace, version string) error {
	return s.informer.WaitForResourceVersion(ctx, namespace, version)
}

func (s stored[T]) waitForSync(ctx context.Context) error {
	return s.informer.WaitForSyncOrRefusal(ctx)
}
func (s stored[T]) hasSynced() bool { return s.informer.HasSynced() }
func (s stored[T]) release()        { informer.Release(s.informer) }

// objects makes a slice of the interface, in place where it is one already.
func objects[T Object](typed []T) []Object {
	if same, ok := any(typed).([]Object); ok {
		return same
	}
	all := make([]Object, len(typed))
	for i, obj := range typed {
		all[i] = obj
	}
	return all
}
