package kinds

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// Form is the representation of an object in this process.
type Form uint8

const (
	Typed        Form = iota // A Go type of the API.
	Unstructured             // *unstructured.Unstructured
	Metadata                 // *metav1.PartialObjectMetadata
)

// Kind is a kind of objects in one form.
type Kind struct {
	GVK  schema.GroupVersionKind
	Form Form
}

// ErrNoObject is the error of a call with a nil object.
var ErrNoObject = errors.New("the object is nil: pass a pointer to one, like &corev1.Pod{}")

// Of returns the kind of an object. For a list it returns the kind of the items.
func Of(scheme *runtime.Scheme, obj runtime.Object) (Kind, error) {
	if misuse.IsNil(obj) {
		return Kind{}, ErrNoObject
	}
	k := Kind{GVK: obj.GetObjectKind().GroupVersionKind()}
	switch obj.(type) {
	case *unstructured.Unstructured, *unstructured.UnstructuredList:
		k.Form = Unstructured
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		k.Form = Metadata
	default:
		if scheme == nil {
			return k, fmt.Errorf(
				"the scheme, which tells the kind of %T, is nil: give the one of the client, Scheme()", obj,
			)
		}
		kinds, _, err := scheme.ObjectKinds(obj)
		switch {
		case err != nil:
			return k, err
		case slices.Contains(kinds, k.GVK):
		case len(kinds) > 1:
			return k, fmt.Errorf("%T is registered for %d kinds (%v): set apiVersion and kind to those of one of them",
				obj, len(kinds), kinds)
		default:
			k.GVK = kinds[0]
		}
	}
	if _, object := obj.(metav1.Object); !object {
		k.GVK.Kind = strings.TrimSuffix(k.GVK.Kind, "List")
	}
	if k.GVK.Kind == "" || k.GVK.Version == "" {
		return k, fmt.Errorf("%T has no kind: set apiVersion and kind", obj)
	}
	return k, nil
}

// List returns the kind of lists of k.
func (k Kind) List() schema.GroupVersionKind {
	return k.GVK.GroupVersion().WithKind(k.GVK.Kind + "List")
}

// New returns a new, empty object of the kind.
func (k Kind) New(scheme *runtime.Scheme) (informer.Object, error) {
	var obj informer.Object
	switch k.Form {
	case Unstructured:
		obj = &unstructured.Unstructured{}
	case Metadata:
		obj = &metav1.PartialObjectMetadata{}
	default:
		made, err := scheme.New(k.GVK)
		if err != nil {
			return nil, err
		}
		typed, ok := made.(informer.Object)
		if !ok {
			return nil, fmt.Errorf("%T has no object metadata", made)
		}
		obj = typed
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GVK)
	return obj, nil
}

// Set copies the struct at src to dst. Both must be pointers to the same type.
func Set(dst, src runtime.Object) { reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(src).Elem()) }
