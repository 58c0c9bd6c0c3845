package cached

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer"
)

// store is an informer whose Go type is hidden.
type store interface {
	// Get returns the object of that key.
	Get(key ObjectKey) (informer.Object, bool)
	// Watermark is NamespaceResourceVersion of [informer.Informer].
	Watermark(namespace string) string
	// History is that of [informer.Informer].
	History(namespace string) int64
	// WaitForVersion is WaitForResourceVersion of [informer.Informer].
	WaitForVersion(ctx context.Context, namespace, version string) error
	list(namespace string, sel labels.Selector) []informer.Object
	byIndex(name, value string) ([]informer.Object, error)
	addIndex(name string, f func(informer.Object) ([]string, error)) error
	waitForSync(ctx context.Context) error
	release()
}

// stored is the store of an informer of T.
type stored[T informer.Object] struct{ informer informer.Informer[T] }

func storeOf[T informer.Object](f *informer.Factory, o informer.InformerOptions) (store, error) {
	inf, err := informer.ForOptions[T](f, o)
	if err != nil {
		return nil, err
	}
	return stored[T]{inf}, nil
}

func (s stored[T]) Get(key ObjectKey) (informer.Object, bool) {
	return s.informer.Get(key.Namespace, key.Name)
}

func (s stored[T]) Watermark(namespace string) string {
	return s.informer.NamespaceResourceVersion(namespace)
}

func (s stored[T]) History(namespace string) int64 { return s.informer.History(namespace) }

func (s stored[T]) WaitForVersion(ctx context.Context, namespace, version string) error {
	return s.informer.WaitForResourceVersion(ctx, namespace, version)
}

func (s stored[T]) list(namespace string, sel labels.Selector) []informer.Object {
	return objects(s.informer.List(namespace, sel))
}

func (s stored[T]) byIndex(name, value string) ([]informer.Object, error) {
	found, err := s.informer.ByIndex(name, value)
	return objects(found), err
}

func (s stored[T]) addIndex(name string, f func(informer.Object) ([]string, error)) error {
	return s.informer.AddIndex(name, func(obj T) ([]string, error) { return f(obj) })
}

func (s stored[T]) waitForSync(ctx context.Context) error {
	if s.informer.HasSynced() {
		return nil
	}
	return s.informer.WaitForSyncFailFast(ctx)
}

func (s stored[T]) release() { informer.Release(s.informer) }

// objects converts a slice of T. It returns the same slice if T is the interface.
func objects[T informer.Object](typed []T) []informer.Object {
	if same, ok := any(typed).([]informer.Object); ok {
		return same
	}
	all := make([]informer.Object, len(typed))
	for i, obj := range typed {
		all[i] = obj
	}
	return all
}
