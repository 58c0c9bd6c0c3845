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

// AlreadyOwnedError reports that an object already has another controller.
type AlreadyOwnedError struct {
	Object client.ObjectKey
	Owner  metav1.OwnerReference
}

func (e *AlreadyOwnedError) Error() string {
	return fmt.Sprintf("%s is controlled by %s %s", e.Object, e.Owner.Kind, e.Owner.Name)
}

// WithBlockOwnerDeletion is an option of [SetControllerReference] and [SetOwnerReference]. If block is set, a
// foreground deletion of the owner waits for the object.
func WithBlockOwnerDeletion(block bool) func(*metav1.OwnerReference) {
	return func(ref *metav1.OwnerReference) { ref.BlockOwnerDeletion = &block }
}

// SetControllerReference makes owner the controller of obj: deleting owner deletes obj, and a foreground deletion of
// owner waits for obj unless options change that. It replaces a reference to a deleted object that had the name of
// owner. It sends no request.
//
// Errors: [AlreadyOwnedError]; an error if the namespaces forbid that owner owns obj, or if owner has no UID.
func SetControllerReference(owner, obj metav1.Object, scheme *runtime.Scheme,
	options ...func(*metav1.OwnerReference),
) error {
	ref, err := ownerReference(owner, obj, scheme)
	if err != nil {
		return err
	}
	yes, block := true, true
	ref.Controller, ref.BlockOwnerDeletion = &yes, &block
	if has := metav1.GetControllerOf(obj); has != nil && !sameOwner(*has, ref) {
		return &AlreadyOwnedError{Object: client.ObjectKeyFromObject(obj), Owner: *has}
	}
	setReference(obj, ref, options)
	return nil
}

// SetOwnerReference makes owner one of the owners of obj, which is deleted when all of them are. It replaces a
// reference to owner, or to a deleted object that had its name; a controller reference stays one. It sends no request.
func SetOwnerReference(owner, obj metav1.Object, scheme *runtime.Scheme,
	options ...func(*metav1.OwnerReference),
) error {
	ref, err := ownerReference(owner, obj, scheme)
	if err != nil {
		return err
	}
	setReference(obj, ref, options)
	return nil
}

// HasControllerReference reports whether obj has a controller.
func HasControllerReference(obj metav1.Object) bool { return metav1.GetControllerOf(obj) != nil }

// HasOwnerReference reports whether refs has a reference to owner. A reference with another UID does not count, unless
// owner has no UID.
func HasOwnerReference(refs []metav1.OwnerReference, owner client.Object, scheme *runtime.Scheme) (bool, error) {
	k, err := kinds.Of(scheme, owner)
	if err != nil {
		return false, err
	}
	want := metav1.OwnerReference{
		APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Name: owner.GetName(), UID: owner.GetUID(),
	}
	return slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool {
		return sameOwner(r, want) && (want.UID == "" || r.UID == want.UID)
	}), nil
}

// RemoveOwnerReference removes owner from the owners of obj and reports whether that changed obj. It sends no request.
func RemoveOwnerReference(owner metav1.Object, obj metav1.Object) (changed bool) {
	refs := slices.DeleteFunc(slices.Clone(obj.GetOwnerReferences()),
		func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
	changed = len(refs) != len(obj.GetOwnerReferences())
	if changed {
		obj.SetOwnerReferences(refs)
	}
	return changed
}

// RemoveControllerReference is [RemoveOwnerReference] for the controller of obj. It does nothing if owner is not the
// controller.
func RemoveControllerReference(owner metav1.Object, obj metav1.Object) (changed bool) {
	return metav1.IsControlledBy(obj, owner) && RemoveOwnerReference(owner, obj)
}

func ownerReference(owner, obj metav1.Object, scheme *runtime.Scheme) (metav1.OwnerReference, error) {
	if misuse.IsNil(obj) {
		return metav1.OwnerReference{}, errors.New("set owner: the owned object is nil")
	}
	whole, ok := owner.(client.Object)
	if !ok && !misuse.IsNil(owner) {
		return metav1.OwnerReference{}, fmt.Errorf("owner of %s: %T is not an object of the API",
			client.ObjectKeyFromObject(obj), owner)
	}
	k, err := kinds.Of(scheme, whole)
	if err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("owner of %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	if owner.GetUID() == "" {
		return metav1.OwnerReference{},
			fmt.Errorf("owner of %s: %s %s has no UID: it was not read from the server",
				client.ObjectKeyFromObject(obj), k.GVK.Kind, owner.GetName())
	}
	// The garbage collector looks for the owner in the namespace of the owned object, and deletes the object if the
	// owner is not there.
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

// setReference replaces all references to the same owner by ref, or adds ref.
func setReference(obj metav1.Object, ref metav1.OwnerReference, options []func(*metav1.OwnerReference)) {
	refs := slices.Clone(obj.GetOwnerReferences())
	same := func(r metav1.OwnerReference) bool { return sameOwner(r, ref) }
	i := slices.IndexFunc(refs, same)
	if i < 0 {
		i, refs = len(refs), append(refs, ref)
	} else if ref.Controller == nil {
		ref.Controller, ref.BlockOwnerDeletion = refs[i].Controller, refs[i].BlockOwnerDeletion
	}
	for _, option := range options {
		option(&ref)
	}
	refs[i] = ref
	obj.SetOwnerReferences(append(refs[:i+1], slices.DeleteFunc(refs[i+1:], same)...))
}

// sameOwner reports whether both references have the same group, kind and name. It ignores the version, which may
// change, and the UID: a reference to a deleted object of the same name is out of date.
func sameOwner(a, b metav1.OwnerReference) bool {
	ga, _ := schema.ParseGroupVersion(a.APIVersion)
	gb, _ := schema.ParseGroupVersion(b.APIVersion)
	return ga.Group == gb.Group && a.Kind == b.Kind && a.Name == b.Name
}
