package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type ownerKey struct{}

// WithOwner makes owner the one in whose name the writes with the returned context are made; see [Cluster.Ready]. owner is any
// comparable value. Package reconcile does this for every reconcile.
func WithOwner(ctx context.Context, owner any) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

// OwnerFrom returns the owner that ctx carries; nil if none.
func OwnerFrom(ctx context.Context) any { return ctx.Value(ownerKey{}) }

// ControllerOwner is the owner of writes whose context carries none: the controller of the object that is written. An owner
// reference does not tell whether the owner lives in a namespace. So one asked for without a namespace, as a Node is, stands
// for what was written in any.
type ControllerOwner struct {
	schema.GroupKind
	ObjectKey
}

// stands says whether who asks for owner means what was written in the name of writer.
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

// ownerOf says in whose name obj, which may be nil, is written.
func ownerOf(ctx context.Context, obj Object) any {
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
