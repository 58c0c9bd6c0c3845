package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// Object is an object of the API: a pointer to a Go type of the API, *unstructured.Unstructured or
// *metav1.PartialObjectMetadata.
type Object = informer.Object

// ObjectList is a list of objects: a pointer to a list type of the API, *unstructured.UnstructuredList or
// *metav1.PartialObjectMetadataList.
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}

// ObjectKey names an object within its resource. Cluster-scoped objects have no namespace.
type ObjectKey = types.NamespacedName

// ObjectKeyFromObject returns the key of obj. For nil it returns the empty key, which every call refuses.
func ObjectKeyFromObject(obj metav1.Object) ObjectKey {
	if misuse.IsNil(obj) {
		return ObjectKey{}
	}
	return ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Reader reads objects. A cached read fails with [informer.ErrNotStarted] until the caches run, that is, until the
// manager is started.
type Reader interface {
	// Get reads the object with that key into obj.
	//
	// Errors: NotFound; in a reconcile, [ErrStale]; Forbidden with the missing permission, also if the cache lacks it.
	Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error
	// List reads the objects that opts select into list, in no order.
	//
	// Errors: in a reconcile, [ErrStale]; [ErrNoIndex] for a field without an index; Forbidden, as for Get.
	List(ctx context.Context, list ObjectList, opts ...ListOption) error
}

// Client reads and writes objects. [Cluster] implements it.
type Client interface {
	Reader
	Writer
	// Status is SubResource("status").
	Status() SubResourceClient
	// SubResource returns the client of a subresource such as "scale" or "eviction".
	SubResource(name string) SubResourceClient
	// Scheme returns the scheme that maps Go types to kinds.
	Scheme() *runtime.Scheme
	// GroupVersionKindFor returns the kind of obj.
	GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error)
}

// Writer writes objects. A write that succeeds replaces obj by the object that the server answered.
type Writer interface {
	// Create creates obj. With metadata.generateName the server chooses the name.
	Create(ctx context.Context, obj Object, opts ...WriteOption) error
	// Update replaces the object. If obj has a resource version, the server refuses the update of any other version.
	Update(ctx context.Context, obj Object, opts ...WriteOption) error
	// Patch sends the patch for obj, which is the state that the caller wants.
	Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error
	// Apply applies obj server-side. obj comes from client-go's applyconfigurations or from
	// [ApplyConfigurationFromUnstructured].
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...WriteOption) error
	// Delete deletes the object. If it has finalizers or a grace period, the server only marks it as deleted.
	Delete(ctx context.Context, obj Object, opts ...DeleteOption) error
	// DeleteAllOf deletes the objects of obj's kind that opts select.
	DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error
}

// FieldIndexer adds indexes to caches; see [Cluster.IndexField].
type FieldIndexer interface {
	IndexField(ctx context.Context, obj Object, field string, extract func(Object) []string) error
}

// The names of controller-runtime for [SubResourceClient].
type (
	StatusWriter      = SubResourceClient
	SubResourceWriter = SubResourceClient
)

// SubResourceClient reads and writes one subresource. The argument sub is an object of the subresource's own kind, such
// as a Scale or an Eviction.
type SubResourceClient interface {
	// Get reads the subresource of obj into sub, from the server.
	Get(ctx context.Context, obj, sub Object) error
	// Create posts sub to the subresource of obj.
	Create(ctx context.Context, obj, sub Object, opts ...WriteOption) error
	// Update replaces the subresource by obj, as for status, or by the object of [WithSubResourceBody].
	Update(ctx context.Context, obj Object, opts ...WriteOption) error
	// Patch patches the subresource of obj.
	Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error
	// Apply applies obj to the subresource, server-side.
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...WriteOption) error
}

// IgnoreNotFound returns nil if err is NotFound, and err otherwise.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// IgnoreAlreadyExists returns nil if err is AlreadyExists, and err otherwise.
func IgnoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
