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

// Object is what can be read and written: a Go type of the API, *unstructured.Unstructured or
// *metav1.PartialObjectMetadata.
type Object = informer.Object

// ObjectList is a list of such objects: a list type of the API, *unstructured.UnstructuredList or
// *metav1.PartialObjectMetadataList.
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}

// ObjectKey names an object within its resource. Namespace is empty for cluster-scoped ones.
type ObjectKey = types.NamespacedName

// ObjectKeyFromObject returns the key of obj; an empty one of nil, which every call refuses.
func ObjectKeyFromObject(obj metav1.Object) ObjectKey {
	if misuse.IsNil(obj) {
		return ObjectKey{}
	}
	return ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// Reader reads objects. Before its caches run, as before the manager is started, a cached read fails with
// [informer.ErrNotStarted].
type Reader interface {
	// Get reads the object named by key into obj.
	//
	// Errors: NotFound; in a reconcile, [ErrStale]; Forbidden, with the permission in words, also when it is the cache
	// that lacks it.
	Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error
	// List reads the objects that opts select into list, in no order.
	//
	// Errors: in a reconcile, [ErrStale]; [ErrNoIndex] for a field that no index was made for; Forbidden, as Get.
	List(ctx context.Context, list ObjectList, opts ...ListOption) error
}

// Client reads and writes. [Cluster] is one. After a write that succeeded, obj is what the server answered.
type Client interface {
	Reader
	// Create creates obj. With metadata.generateName the server chooses the name.
	Create(ctx context.Context, obj Object, opts ...WriteOption) error
	// Update replaces the object. With a resource version in obj, only if it is still at that.
	Update(ctx context.Context, obj Object, opts ...WriteOption) error
	// Patch sends what patch makes of obj.
	Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error
	// Apply applies a configuration, server-side: one made by client-go's applyconfigurations, or by
	// [ApplyUnstructured].
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...WriteOption) error
	// Delete deletes the object, or makes the server begin to.
	Delete(ctx context.Context, obj Object, opts ...DeleteOption) error
	// DeleteAllOf deletes the objects of obj's kind that opts select.
	DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error
	// Status is SubResource("status").
	Status() SubResourceClient
	// SubResource returns the client of a subresource, as "scale" or "eviction".
	SubResource(name string) SubResourceClient
	// Scheme tells kinds of Go types.
	Scheme() *runtime.Scheme
	// GroupVersionKindFor returns the kind of obj.
	GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error)
}

// SubResourceClient reads and writes one subresource. Where sub is an argument, it is the subresource's own object,
// as a Scale or an Eviction.
type SubResourceClient interface {
	// Get reads the subresource of obj into sub, from the server.
	Get(ctx context.Context, obj, sub Object) error
	// Create posts sub to the subresource of obj.
	Create(ctx context.Context, obj, sub Object, opts ...WriteOption) error
	// Update replaces the subresource: by obj itself, as status; or by the one of [WithSubResourceBody].
	Update(ctx context.Context, obj Object, opts ...WriteOption) error
	// Patch patches the subresource of obj.
	Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error
	// Apply applies to the subresource, server-side.
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...WriteOption) error
}

// IgnoreNotFound returns err, or nil if it says that an object does not exist.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// IgnoreAlreadyExists returns err, or nil if it says that an object exists already.
func IgnoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
