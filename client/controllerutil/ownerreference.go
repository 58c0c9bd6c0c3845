package controllerutil

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// AlreadyOwnedError says that an object has another controller.
type AlreadyOwnedError struct {
	Object client.ObjectKey
	Owner  metav1.OwnerReference
}

func (e *AlreadyOwnedError) Error() string {
	return fmt.Sprintf("%s is controlled by %s %s", e.Object, e.Owner.Kind, e.Owner.Name)
}

// SetControllerReference makes owner the controller of obj: who deletes owner deletes obj, and owner cannot be gone
// before obj is. Nothing is written.
//
// Errors: [AlreadyOwnedError]; when owner cannot own obj because of their namespaces, or has no UID.
func SetControllerReference(owner client.Object, obj metav1.Object, scheme *runtime.Scheme) error {
	ref, err := ownerReference(owner, obj, scheme)
	if err != nil {
		return err
	}
	yes := true
	ref.Controller, ref.BlockOwnerDeletion = &yes, &yes
	if has := metav1.GetControllerOf(obj); has != nil && !sameOwner(*has, ref) {
		return &AlreadyOwnedError{Object: client.ObjectKeyFromObject(obj), Owner: *has}
	}
	setReference(obj, ref)
	return nil
}

// SetOwnerReference makes owner one of the owners of obj, which is deleted when all of them are. Nothing is written.
func SetOwnerReference(owner client.Object, obj metav1.Object, scheme *runtime.Scheme) error {
	ref, err := ownerReference(owner, obj, scheme)
	if err != nil {
		return err
	}
	setReference(obj, ref)
	return nil
}

// RemoveOwnerReference makes owner none of the owners of obj, and reports whether that changed it. Nothing is written.
func RemoveOwnerReference(owner metav1.Object, obj metav1.Object) (changed bool) {
	refs := slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()),
		func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
	changed = len(refs) != len(obj.GetOwnerReferences())
	if changed {
		obj.SetOwnerReferences(refs)
	}
	return changed
}

func ownerReference(owner client.Object, obj metav1.Object, scheme *runtime.Scheme) (metav1.OwnerReference, error) {
	if misuse.IsNil(obj) {
		return metav1.OwnerReference{}, errors.New("set owner: the owned object is nil")
	}
	k, err := kinds.Of(scheme, owner)
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("owner of %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	if owner.GetUID() == "" {
		return metav1.OwnerReference{},
			fmt.Errorf("owner of %s: %s %s has no UID: it was not read from the server",
				client.ObjectKeyFromObject(obj), k.GVK.Kind, owner.GetName())
	}
	// The garbage collector looks for the owner in the namespace of what is owned, and deletes what it owns if it is
	// not there.
	if owner.GetNamespace() != "" && owner.GetNamespace() != obj.GetNamespace() {
		return metav1.OwnerReference{},
			fmt.Errorf("%s %s of namespace %s cannot own %s: an owner must be in the same namespace, or cluster-scoped",
				k.GVK.Kind, owner.GetName(), owner.GetNamespace(), client.ObjectKeyFromObject(obj))
	}
	return metav1.OwnerReference{
		APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Name: owner.GetName(),
		UID: owner.GetUID(),
	}, nil
}

func setReference(obj metav1.Object, ref metav1.OwnerReference) {
	refs := slices.Clone(obj.GetOwnerReferences())
	if i := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return sameOwner(r, ref) }); i >= 0 {
		if ref.Controller == nil {
			ref.Controller, ref.BlockOwnerDeletion = refs[i].Controller, refs[i].BlockOwnerDeletion
		}
		refs[i] = ref
	} else {
		refs = append(refs, ref)
	}
	obj.SetOwnerReferences(refs)
}

// sameOwner ignores the version of the API, which may change.
func sameOwner(a, b metav1.OwnerReference) bool {
	ga, _ := schema.ParseGroupVersion(a.APIVersion)
	gb, _ := schema.ParseGroupVersion(b.APIVersion)
	return ga.Group == gb.Group && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID
}
