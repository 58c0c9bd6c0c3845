package builder

import (
	"context"
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/manager/webhook/admission"
)

// defaulter calls a Defaulter of a type that is known only at run time.
type defaulter struct {
	method reflect.Value
}

// defaulterOf makes a Defaulter of any object from given, which must be a Defaulter of the example's type.
func defaulterOf(given any, example runtime.Object) (admission.Defaulter[runtime.Object], error) {
	if d, ok := given.(admission.Defaulter[runtime.Object]); ok {
		return d, nil
	}
	m := reflect.ValueOf(given).MethodByName("Default")
	return defaulter{m}, checkMethod(m, "Default", example, 1, reflect.TypeFor[error]())
}

// Default implements admission.Defaulter.
func (d defaulter) Default(ctx context.Context, obj runtime.Object) error {
	err, _ := d.method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(obj)})[0].Interface().(error)
	return err
}

// validator calls a Validator of a type that is known only at run time.
type validator struct {
	create, update, remove reflect.Value
}

// validatorOf makes a Validator of any object from given, which must be a Validator of the example's type.
func validatorOf(given any, example runtime.Object) (admission.Validator[runtime.Object], error) {
	if v, ok := given.(admission.Validator[runtime.Object]); ok {
		return v, nil
	}
	out := []reflect.Type{reflect.TypeFor[admission.Warnings](), reflect.TypeFor[error]()}
	of := reflect.ValueOf(given)
	v := validator{
		of.MethodByName("ValidateCreate"), of.MethodByName("ValidateUpdate"), of.MethodByName("ValidateDelete"),
	}
	return v, errors.Join(
		checkMethod(v.create, "ValidateCreate", example, 1, out...),
		checkMethod(v.update, "ValidateUpdate", example, 2, out...),
		checkMethod(v.remove, "ValidateDelete", example, 1, out...))
}

func (v validator) ValidateCreate(ctx context.Context, obj runtime.Object) (admission.Warnings, error) {
	return verdict(ctx, v.create, obj)
}

func (v validator) ValidateUpdate(ctx context.Context, oldObj, newObj runtime.Object) (admission.Warnings, error) {
	return verdict(ctx, v.update, oldObj, newObj)
}

func (v validator) ValidateDelete(ctx context.Context, obj runtime.Object) (admission.Warnings, error) {
	return verdict(ctx, v.remove, obj)
}

func verdict(ctx context.Context, method reflect.Value, objects ...runtime.Object) (admission.Warnings, error) {
	in := []reflect.Value{reflect.ValueOf(ctx)}
	for _, obj := range objects {
		in = append(in, reflect.ValueOf(obj))
	}
	out := method.Call(in)
	warnings, _ := out[0].Convert(reflect.TypeFor[admission.Warnings]()).Interface().(admission.Warnings)
	err, _ := out[1].Interface().(error)
	return warnings, err
}
