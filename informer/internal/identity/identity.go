// Package identity compares states of objects: whether two are the same object, and the same state of it.
package identity

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/objects"
)

// Identity is what the cache compares of two states that have the same key.
type Identity struct {
	UID types.UID
	// Version is the resource version; "" when unknown.
	Version string
}

// Of returns the identity of obj. Objects without metadata have none, so each counts as a new state.
func Of[T any](obj T) Identity {
	m, ok := any(obj).(metav1.Object)
	if !ok {
		return Identity{}
	}
	return Identity{UID: m.GetUID(), Version: m.GetResourceVersion()}
}

// SameObject reports whether both are states of one object. An empty UID, as in objects written by hand, matches any.
func (i Identity) SameObject(other Identity) bool {
	return i.UID == other.UID || i.UID == "" || other.UID == ""
}

// SameState reports whether both are the same state of one object.
func (i Identity) SameState(other Identity) bool {
	return i.UID == other.UID && i.Version == other.Version && i.Version != ""
}

// State returns the state that obj is in; the zero State if obj has no metadata.
func State[T any](obj T) (s objects.State) {
	if m, ok := any(obj).(metav1.Object); ok {
		s.Namespace, s.Name = []byte(m.GetNamespace()), []byte(m.GetName())
		s.UID, s.ResourceVersion = []byte(m.GetUID()), []byte(m.GetResourceVersion())
	}
	return s
}

// Missing reports whether obj is nil, or a nil pointer in an interface.
func Missing(obj any) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Describe names obj in a message: by its key, or by its type if it has no metadata.
func Describe(obj any) string {
	if m, ok := obj.(metav1.Object); ok {
		return objects.Key(m)
	}
	return fmt.Sprintf("%T", obj)
}
