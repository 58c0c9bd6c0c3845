package ownwrites

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerKey is the key under which a context has the owner, any comparable value, of what is written with it.
type OwnerKey struct{}

// WithOwner makes owner, any comparable value, the one in whose name the writes with the returned context are made.
func WithOwner(ctx context.Context, owner any) context.Context {
	return context.WithValue(ctx, OwnerKey{}, owner)
}

// OwnerFrom returns the owner that ctx carries; nil if none.
func OwnerFrom(ctx context.Context) any { return ctx.Value(OwnerKey{}) }

// ObjectKey names an object within its resource.
type ObjectKey = types.NamespacedName

// ControllerOwner is the owner of writes whose context carries none: the controller of the object that is written.
// An owner reference does not tell whether the owner lives in a namespace. So one asked for without a namespace, as
// a Node is, stands for what was written in any.
type ControllerOwner struct {
	schema.GroupKind
	ObjectKey
}

// OwnerOf returns in whose name obj, which may be nil, is written.
func OwnerOf(ctx context.Context, obj metav1.Object) any {
	if owner := OwnerFrom(ctx); owner != nil {
		return owner
	}
	if obj == nil {
		return nil
	}
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil {
		return nil
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil
	}
	return ControllerOwner{
		GroupKind: schema.GroupKind{Group: gv.Group, Kind: ref.Kind},
		ObjectKey: ObjectKey{Namespace: obj.GetNamespace(), Name: ref.Name},
	}
}

// stands reports whether a question about owner is also about what was written in the name of writer.
func stands(owner, writer any) bool {
	if owner == writer {
		return true
	}
	asked, is := owner.(ControllerOwner)
	wrote, has := writer.(ControllerOwner)
	if !is || !has || asked.Namespace != "" {
		return false
	}
	wrote.Namespace = ""
	return asked == wrote
}
