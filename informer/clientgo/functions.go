package clientgo

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	peer "k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
)

// The functions in this file only compute or wait. They call client-go's, so that a program needs only one import.

// MetaNamespaceKeyFunc is client-go's: "namespace/name".
func MetaNamespaceKeyFunc(obj any) (string, error) { return peer.MetaNamespaceKeyFunc(obj) }

// DeletionHandlingMetaNamespaceKeyFunc is client-go's: MetaNamespaceKeyFunc that also accepts
// [DeletedFinalStateUnknown].
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

// WaitForCacheSync is client-go's. Prefer [WaitFor]: it does not poll, and it names what it waits for.
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

// ToListWatcherWithWatchListSemantics is client-go's: it returns lw together with whether client can stream lists.
func ToListWatcherWithWatchListSemantics(lw *ListWatch, client any) ListerWatcher {
	return peer.ToListWatcherWithWatchListSemantics(lw, client)
}

// DefaultWatchErrorHandler is client-go's: it logs.
func DefaultWatchErrorHandler(ctx context.Context, r *peer.Reflector, err error) {
	peer.DefaultWatchErrorHandler(ctx, r, err)
}

// The interfaces of client-go that this package implements.
type (
	Store                            = peer.Store
	Indexer                          = peer.Indexer
	SharedInformer                   = peer.SharedInformer
	SharedIndexInformer              = peer.SharedIndexInformer
	Controller                       = peer.Controller
	ResourceEventHandlerRegistration = peer.ResourceEventHandlerRegistration
	DoneChecker                      = peer.DoneChecker
)

// The types of client-go in the signatures of those interfaces.
type (
	Indexers                   = peer.Indexers
	IndexFunc                  = peer.IndexFunc
	KeyFunc                    = peer.KeyFunc
	ExplicitKey                = peer.ExplicitKey
	ObjectName                 = peer.ObjectName
	TransformFunc              = peer.TransformFunc
	InformerSynced             = peer.InformerSynced
	HandlerOptions             = peer.HandlerOptions
	InformerOptions            = peer.InformerOptions
	SharedIndexInformerOptions = peer.SharedIndexInformerOptions
	DeletedFinalStateUnknown   = peer.DeletedFinalStateUnknown
	GenericLister              = peer.GenericLister
	GenericNamespaceLister     = peer.GenericNamespaceLister
)

// Types for listing and watching.
type (
	ListerWatcher    = peer.ListerWatcher
	ListWatch        = peer.ListWatch
	ReflectorOptions = peer.ReflectorOptions
	// Reflector is the type that watch error handlers get. The reflectors of this package are [StoreReflector]; a
	// Reflector never runs here.
	Reflector = peer.Reflector
)

// The handler types of client-go.
type (
	ResourceEventHandler              = peer.ResourceEventHandler
	ResourceEventHandlerFuncs         = peer.ResourceEventHandlerFuncs
	ResourceEventHandlerDetailedFuncs = peer.ResourceEventHandlerDetailedFuncs
	FilteringResourceEventHandler     = peer.FilteringResourceEventHandler
)

// NamespaceIndex is the name of the index by namespace.
const NamespaceIndex = peer.NamespaceIndex

// held is an object in an informer's cache as client-go sees it: its key alone identifies it, and the state that
// arrived last is the newest. The core identifies objects by UID and states by resource version. held hides both, so
// the core accepts each state as it arrives, and treats a change of the UID as an update. Only objects from a list show
// their version, so a later list does not touch objects that did not change.
//
// Source: the comment of SharedInformer in k8s.io/client-go/tools/cache v0.37.2: "the ObjectMeta.UID is not part of an
// object's ID".
type held struct {
	informer.Object
	from origin
}

// origin is how an object came into the cache.
type origin uint8

const (
	fromList origin = iota
	fromWatch
	// fromAdded marks an object from an ADDED event.
	fromAdded
	// fromWrite marks an object that a program wrote into the informer's store itself.
	fromWrite
)

// GetUID hides the UID; see held.
func (held) GetUID() types.UID { return "" }

// GetResourceVersion hides most resource versions; see held.
func (h held) GetResourceVersion() string {
	if h.from == fromList {
		return h.Object.GetResourceVersion()
	}
	return ""
}

// listedAgain reports whether obj repeats old: a list contained the state that a watch had already delivered. The
// versions decide, because a server never gives two states the same version. Only fake clients do, and from a watch
// such a state counts as an update.
func listedAgain(old, obj held) bool {
	if obj.from != fromList || obj.Object == old.Object { // The same pointer is a resync.
		return false
	}
	version := obj.Object.GetResourceVersion()
	return version != "" && version == old.Object.GetResourceVersion() && obj.Object.GetUID() == old.Object.GetUID()
}

// keyed is an object in a store without an informer. It is any value together with its key, so that the key is computed
// only once.
type keyed struct {
	key string
	obj any
}

func keyOfKeyed(k keyed) (string, error) { return k.key, nil }
