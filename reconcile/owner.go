package reconcile

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

// OwnerOptions say which owners of a kind are meant, and where they live. The zero value is the controller, in the namespace of
// what it owns.
type OwnerOptions struct {
	// ClusterScoped says that the owners live in no namespace, as Nodes do; what they own may be in any. An owner
	// reference does not tell: the kind's RESTMapping does, which manager.Manager.IsNamespaced asks for.
	ClusterScoped bool
	// EveryOwner means all owners of the kind, not only the one whose reference says controller=true.
	EveryOwner bool
}

// EnqueueOwner is the handler that queues the owner of an object, if that is of the given kind: the owner reference whose API
// group and kind match, in whatever version. When the reference changes, the old and the new owner are queued. It
// expands to [EnqueueMapped] with [OwnersOf].
//
// Builder.Owns of manager/builder finds out itself whether the owners live in namespaces.
func EnqueueOwner[T informer.Object](kind schema.GroupKind, o OwnerOptions) EventHandler[T, Request] {
	if kind.Kind == "" {
		panic(`reconcile: EnqueueOwner: the kind is empty; give one like schema.GroupKind{Group: "apps", Kind: "Deployment"}`)
	}
	return EnqueueMapped(func(_ context.Context, obj T) []Request { return OwnersOf(obj, kind, o) })
}

// OwnersOf returns the requests that name the owners of obj which are of the given kind.
func OwnersOf(obj metav1.Object, kind schema.GroupKind, o OwnerOptions) (owners []Request) {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind != kind.Kind || !o.EveryOwner && (ref.Controller == nil || !*ref.Controller) {
			continue
		}
		group, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil || group.Group != kind.Group {
			continue
		}
		owner := Request{types.NamespacedName{Namespace: obj.GetNamespace(), Name: ref.Name}}
		if o.ClusterScoped {
			owner.Namespace = ""
		}
		owners = append(owners, owner)
	}
	return owners
}
