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

// goType is the converter of one kind with a Go type. Unlike the converter that it wraps, it does not check its objects
// against the schema. The schema describes the Go type, so the compiler has checked almost everything. The one thing
// that it cannot check is that a list's items have their keys, and the comparison that follows finds that too. The
// check would take a third of the time that computing the managers takes.
//
// Applied configurations are checked nevertheless: they are unstructured, and must not have duplicates.
type goType struct {
	managedfields.TypeConverter
	kind schema.GroupVersionKind

	// schema is the kind's schema. It is known once an object has been converted.
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
	//lint:ignore SA1019 deprecated because checking has become cheap, but it is not cheap enough here
	return typed.AsTypedUnvalidated(v, s.Schema, s.TypeRef), nil
}
