package registry

import (
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// goType is the converter of one kind with a Go type. It does not check its objects against the schema, as the converter
// that it stands before would: the schema describes the Go type, so the compiler has done that. What the compiler cannot know
// (a list's items need their keys) the comparison that follows finds as well. The check would be a third of the time that
// finding out the managers takes.
//
// What is applied is checked all the same: it is unstructured, and must not have duplicates.
type goType struct {
	managedfields.TypeConverter
	kind schema.GroupVersionKind

	// schema is the kind's, known once an object was converted.
	schema atomic.Pointer[typed.ParseableType]
}

// ObjectToTyped implements [managedfields.TypeConverter].
func (t *goType) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	_, ok := obj.(*unstructured.Unstructured)
	if ok || obj.GetObjectKind().GroupVersionKind() != t.kind || !slices.Contains(opts, typed.AllowDuplicates) {
		return t.TypeConverter.ObjectToTyped(obj, opts...)
	}
	s := t.schema.Load()
	if s == nil {
		checked, err := t.TypeConverter.ObjectToTyped(obj, opts...)
		if err == nil {
			t.schema.Store(&typed.ParseableType{Schema: checked.Schema(), TypeRef: checked.TypeRef()})
		}
		return checked, err
	}
	v, err := value.NewValueReflect(obj)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 deprecated because checking has become cheap, which is not cheap enough here
	return typed.AsTypedUnvalidated(v, s.Schema, s.TypeRef), nil
}
