package clientgo

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	peer "k8s.io/client-go/tools/cache"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The functions of this file only compute or wait: they are client-go's, so that one import is enough.

// MetaNamespaceKeyFunc is client-go's: "namespace/name".
func MetaNamespaceKeyFunc(obj any) (string, error) { return peer.MetaNamespaceKeyFunc(obj) }

// DeletionHandlingMetaNamespaceKeyFunc is client-go's: MetaNamespaceKeyFunc that knows [DeletedFinalStateUnknown].
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	return peer.DeletionHandlingMetaNamespaceKeyFunc(obj)
}

// SplitMetaNamespaceKey is client-go's: the inverse of MetaNamespaceKeyFunc.
func SplitMetaNamespaceKey(key string) (namespace, name string, err error) {
	return peer.SplitMetaNamespaceKey(key)
}

// MetaNamespaceIndexFunc is client-go's: the index by namespace.
func MetaNamespaceIndexFunc(obj any) ([]string, error) { return peer.MetaNamespaceIndexFunc(obj) }

// ObjectToName is client-go's.
func ObjectToName(obj any) (ObjectName, error) { return peer.ObjectToName(obj) }

// MetaObjectToName is client-go's.
func MetaObjectToName(obj metav1.Object) ObjectName { return peer.MetaObjectToName(obj) }

// DeletionHandlingObjectToName is client-go's.
func DeletionHandlingObjectToName(obj any) (ObjectName, error) {
	return peer.DeletionHandlingObjectToName(obj)
}

// NewObjectName is client-go's.
func NewObjectName(namespace, name string) ObjectName { return peer.NewObjectName(namespace, name) }

// ParseObjectName is client-go's.
func ParseObjectName(key string) (ObjectName, error) { return peer.ParseObjectName(key) }

// ListAll is client-go's.
func ListAll(store Store, selector labels.Selector, f peer.AppendFunc) error {
	return peer.ListAll(store, selector, f)
}

// ListAllByNamespace is client-go's.
func ListAllByNamespace(indexer Indexer, namespace string, selector labels.Selector, f peer.AppendFunc) error {
	return peer.ListAllByNamespace(indexer, namespace, selector, f)
}

// NewGenericLister is client-go's.
func NewGenericLister(indexer Indexer, resource schema.GroupResource) GenericLister {
	return peer.NewGenericLister(indexer, resource)
}

// NewListWatchFromClient is client-go's.
func NewListWatchFromClient(c peer.Getter, resource, namespace string, selector fields.Selector) *ListWatch {
	return peer.NewListWatchFromClient(c, resource, namespace, selector)
}

// NewFilteredListWatchFromClient is client-go's.
func NewFilteredListWatchFromClient(c peer.Getter, resource, namespace string,
	modify func(*metav1.ListOptions),
) *ListWatch {
	return peer.NewFilteredListWatchFromClient(c, resource, namespace, modify)
}

// WaitForCacheSync is client-go's. Prefer [WaitFor]: it does not poll, and names what it waits for.
func WaitForCacheSync(stop <-chan struct{}, synced ...InformerSynced) bool {
	return peer.WaitForCacheSync(stop, synced...)
}

// WaitForNamedCacheSync is client-go's.
func WaitForNamedCacheSync(name string, stop <-chan struct{}, synced ...InformerSynced) bool {
	return peer.WaitForNamedCacheSync(name, stop, synced...)
}

// WaitForNamedCacheSyncWithContext is client-go's.
func WaitForNamedCacheSyncWithContext(ctx context.Context, synced ...InformerSynced) bool {
	return peer.WaitForNamedCacheSyncWithContext(ctx, synced...)
}

// WaitFor is client-go's.
func WaitFor(ctx context.Context, what string, checkers ...DoneChecker) bool {
	return peer.WaitFor(ctx, what, checkers...)
}

// IsDone is client-go's.
func IsDone(checker DoneChecker) bool { return peer.IsDone(checker) }

// ShutDownEventHandler is client-go's: it removes a handler and waits until its last call has returned.
func ShutDownEventHandler(inf SharedInformer, handle ResourceEventHandlerRegistration) error {
	return peer.ShutDownEventHandler(inf, handle)
}

// NamespacedNameAsObjectName is client-go's.
func NamespacedNameAsObjectName(name types.NamespacedName) ObjectName {
	return peer.NamespacedNameAsObjectName(name)
}

// ToListWatcherWithWatchListSemantics is client-go's: lw, and whether client can stream lists.
func ToListWatcherWithWatchListSemantics(lw *ListWatch, client any) ListerWatcher {
	return peer.ToListWatcherWithWatchListSemantics(lw, client)
}

// DefaultWatchErrorHandler is client-go's: it logs.
func DefaultWatchErrorHandler(ctx context.Context, r *peer.Reflector, err error) {
	peer.DefaultWatchErrorHandler(ctx, r, err)
}
