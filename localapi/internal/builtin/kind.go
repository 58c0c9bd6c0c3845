package builtin

import (
	"context"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// pointerTo is a pointer to the Go type T of an API object.
type pointerTo[T any] interface {
	*T
	runtime.Object
}

// typed returns the start of a definition for the API type with the Go type T and lists of the Go type L. It is not
// namespaced.
func typed[T, L any, P pointerTo[T], PL pointerTo[L]](
	gv schema.GroupVersion, plural string, shortNames ...string,
) *resource.Definition {
	kind := kindOf[T]()
	return &resource.Definition{
		GroupVersion: gv, Kind: kind, Plural: plural, Singular: strings.ToLower(kind), ShortNames: shortNames,
		New:     func() runtime.Object { return P(new(T)) },
		NewList: func() runtime.Object { return PL(new(L)) },
	}
}

// kindOf returns the kind of the API type with the Go type T.
func kindOf[T any]() string { return reflect.TypeFor[T]().Name() }

// namespaced is typed for a namespaced type.
func namespaced[T, L any, P pointerTo[T], PL pointerTo[L]](
	gv schema.GroupVersion, plural string, shortNames ...string,
) *resource.Definition {
	d := typed[T, L, P, PL](gv, plural, shortNames...)
	d.Namespaced = true
	return d
}

// withStatus adds the subresource status to a type with a Spec and a Status. A write to the type leaves its status
// unchanged, and a write to the status leaves its spec unchanged.
func withStatus(d *resource.Definition) {
	d.HasStatus = true
	d.PrepareCreate = func(_ context.Context, obj runtime.Object) { part(obj, "Status").SetZero() }
	d.PrepareUpdate = func(_ context.Context, obj, old runtime.Object) { part(obj, "Status").Set(part(old, "Status")) }
	d.PrepareStatusUpdate = func(_ context.Context, obj, old runtime.Object) {
		part(obj, "Spec").Set(part(old, "Spec"))
	}
}

// withGeneration makes metadata.generation count the changes of one field. It runs after the preparations that the
// definition has so far; a preparation that is set later replaces it.
func withGeneration(d *resource.Definition, name string) {
	create, update := d.PrepareCreate, d.PrepareUpdate
	d.PrepareCreate = func(ctx context.Context, obj runtime.Object) {
		if create != nil {
			create(ctx, obj)
		}
		setGeneration(obj, 1)
	}
	d.PrepareUpdate = func(ctx context.Context, obj, old runtime.Object) {
		if update != nil {
			update(ctx, obj, old)
		}
		same := equality.Semantic.DeepEqual(part(obj, name).Interface(), part(old, name).Interface())
		if m, err := meta.Accessor(old); err == nil && !same {
			setGeneration(obj, m.GetGeneration()+1)
		}
	}
}

func setGeneration(obj runtime.Object, n int64) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetGeneration(n)
	}
}

// part returns a field of the struct that obj points to.
func part(obj runtime.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// The functions below let a type's rules be written for its own Go type. They convert them into the untyped functions
// of a resource.Definition. The server calls a definition only with objects that its New made, so the assertion holds.

func mutate[T runtime.Object](f func(T)) func(runtime.Object) {
	return func(obj runtime.Object) { f(obj.(T)) }
}

func prepare[T runtime.Object](f func(T)) func(context.Context, runtime.Object) {
	return func(_ context.Context, obj runtime.Object) { f(obj.(T)) }
}

func carry[T runtime.Object](f func(obj, old T)) func(ctx context.Context, obj, old runtime.Object) {
	return func(_ context.Context, obj, old runtime.Object) { f(obj.(T), old.(T)) }
}

func check[T runtime.Object](f func(T) field.ErrorList) func(runtime.Object) field.ErrorList {
	return func(obj runtime.Object) field.ErrorList { return f(obj.(T)) }
}

func compare[T runtime.Object](f func(obj, old T) field.ErrorList) func(obj, old runtime.Object) field.ErrorList {
	return func(obj, old runtime.Object) field.ErrorList { return f(obj.(T), old.(T)) }
}

func selectable[T runtime.Object](f func(T) fields.Set) func(runtime.Object) fields.Set {
	return func(obj runtime.Object) fields.Set { return f(obj.(T)) }
}
