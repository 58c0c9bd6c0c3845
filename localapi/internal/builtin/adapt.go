package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
