package cached

import (
	"context"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/writes"
)

// followed is an informer with which own writes are compared.
//
// It does not embed the informer: the program would then have all methods of an informer once more for each T.
type followed[T informer.Object] struct{ informer informer.Informer[T] }

// Get returns the object of that key.
func (f followed[T]) Get(key ObjectKey) (informer.Object, bool) {
	return f.informer.Get(key.Namespace, key.Name)
}

// Watermark is NamespaceResourceVersion of [informer.Informer].
func (f followed[T]) Watermark(namespace string) string {
	return f.informer.NamespaceResourceVersion(namespace)
}

// History is that of [informer.Informer].
func (f followed[T]) History(namespace string) int64 { return f.informer.History(namespace) }

// WaitForVersion is WaitForResourceVersion of [informer.Informer].
func (f followed[T]) WaitForVersion(ctx context.Context, namespace, version string) error {
	return f.informer.WaitForResourceVersion(ctx, namespace, version)
}

// tracked is an informer that is read without the client.
type tracked[T informer.Object] struct{ followed[T] }

// Namespaces implements [writes.Cache].
func (tracked[T]) Namespaces() []string { return nil }

// Track joins the cache of an informer that is read without the client. The informer has to hold every namespace.
func Track[T informer.Object](l *writes.Resource, inf informer.Informer[T]) {
	l.Join(&tracked[T]{followed[T]{inf}})
}
