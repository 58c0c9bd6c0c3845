package objects

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is what an informer can hold: anything with object metadata.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key returns the name of obj within its resource: "namespace/name", or "name" for a cluster-scoped object.
//
// Source: MetaNamespaceKeyFunc in k8s.io/client-go/tools/cache v0.37.2.
func Key(obj metav1.Object) string { return KeyOf(obj.GetNamespace(), obj.GetName()) }

// KeyOf returns the [Key] of the object with that namespace ("" when cluster-scoped) and name.
func KeyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// State identifies one state of one object. The slices point into a buffer of the decoder: they are valid only during
// the call that State is an argument of.
type State struct{ Namespace, Name, UID, ResourceVersion []byte }
