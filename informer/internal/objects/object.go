package objects

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is what an informer can hold: anything with object metadata.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key is the name of obj within its resource: "namespace/name", or "name" for a cluster-scoped object.
//
// Source: MetaNamespaceKeyFunc in k8s.io/client-go/tools/cache v0.37.2.
func Key(obj metav1.Object) string { return KeyOf(obj.GetNamespace(), obj.GetName()) }

// KeyOf is the [Key] of the object with that namespace ("" when cluster-scoped) and name.
func KeyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// State says which state of which object something is. It is valid only during the call that it is an argument of.
type State struct{ Namespace, Name, UID, ResourceVersion []byte }

// Identity is what the cache compares of two states under one key.
type Identity struct {
	UID types.UID
	// Version is the resource version; "" when unknown.
	Version string
}

// Identify reads the identity of obj. What has no metadata has none: it is then always taken for a new state.
func Identify[T any](obj T) Identity {
	m, ok := any(obj).(metav1.Object)
	if !ok {
		return Identity{}
	}
	return Identity{UID: m.GetUID(), Version: m.GetResourceVersion()}
}

// StateOf is the state that obj is; the zero State when it has no metadata.
func StateOf[T any](obj T) (s State) {
	if m, ok := any(obj).(metav1.Object); ok {
		s.Namespace, s.Name = []byte(m.GetNamespace()), []byte(m.GetName())
		s.UID, s.ResourceVersion = []byte(m.GetUID()), []byte(m.GetResourceVersion())
	}
	return s
}

// SameObject reports whether both are states of one object. An absent UID (objects written by hand) matches any.
func (i Identity) SameObject(other Identity) bool {
	return i.UID == other.UID || i.UID == "" || other.UID == ""
}

// SameState reports whether both are the same state of one object.
func (i Identity) SameState(other Identity) bool {
	return i.UID == other.UID && i.Version == other.Version && i.Version != ""
}

// Missing reports whether obj is nothing, of whatever type.
func Missing(obj any) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Describe names an object in a message: its key where it has one.
func Describe(obj any) string {
	if m, ok := obj.(metav1.Object); ok {
		return Key(m)
	}
	return fmt.Sprintf("%T", obj)
}
