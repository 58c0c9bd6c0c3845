package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Validator refuses operations. An error refuses; an error of the API, such as apierrors.NewInvalid, is passed on with
// its code and reason. Warnings are shown to the user in both cases. Use [RequestFromContext] for the operation and its
// user.
//
// Concurrency: the methods are called by several goroutines at once. They must not change the objects' meaning: the
// changes would be lost.
type Validator[T runtime.Object] interface {
	ValidateCreate(ctx context.Context, obj T) (Warnings, error)
	ValidateUpdate(ctx context.Context, oldObj, newObj T) (Warnings, error)
	// ValidateDelete receives the object as it is stored.
	ValidateDelete(ctx context.Context, obj T) (Warnings, error)
}

// WithValidator returns a webhook that calls v for objects of type T, which must be in the scheme. CONNECT is allowed
// without a call of v.
func WithValidator[T runtime.Object](scheme *runtime.Scheme, v Validator[T]) *Webhook {
	return &Webhook{Handler: &validating{NewDecoder(scheme), empty(exampleOf[T]()), typed[T]{v}}}
}

// WithCustomValidator is [WithValidator] for objects whose type is that of the example.
func WithCustomValidator(scheme *runtime.Scheme, example runtime.Object, v Validator[runtime.Object]) *Webhook {
	return &Webhook{Handler: &validating{NewDecoder(scheme), empty(example), v}}
}

// typed is a Validator of T as one of any object.
type typed[T runtime.Object] struct {
	v Validator[T]
}

func (t typed[T]) ValidateCreate(ctx context.Context, obj runtime.Object) (Warnings, error) {
	return t.v.ValidateCreate(ctx, obj.(T))
}

func (t typed[T]) ValidateUpdate(ctx context.Context, oldObj, newObj runtime.Object) (Warnings, error) {
	return t.v.ValidateUpdate(ctx, oldObj.(T), newObj.(T))
}

func (t typed[T]) ValidateDelete(ctx context.Context, obj runtime.Object) (Warnings, error) {
	return t.v.ValidateDelete(ctx, obj.(T))
}

type validating struct {
	decoder   Decoder
	empty     func() runtime.Object
	validator Validator[runtime.Object]
}

// Handle implements [Handler].
func (v *validating) Handle(ctx context.Context, r Request) Response {
	obj, old := v.empty(), v.empty()
	if r.Operation == admissionv1.Create || r.Operation == admissionv1.Update {
		if err := v.decoder.Decode(r, obj); err != nil {
			return Errored(http.StatusBadRequest, err)
		}
	}
	if r.Operation == admissionv1.Update || r.Operation == admissionv1.Delete {
		if err := v.decoder.DecodeRaw(r.OldObject, old); err != nil {
			return Errored(http.StatusBadRequest, fmt.Errorf("the old object: %w", err))
		}
	}
	var warnings Warnings
	var err error
	switch r.Operation {
	case admissionv1.Create:
		warnings, err = v.validator.ValidateCreate(ctx, obj)
	case admissionv1.Update:
		warnings, err = v.validator.ValidateUpdate(ctx, old, obj)
	case admissionv1.Delete:
		warnings, err = v.validator.ValidateDelete(ctx, old)
	case admissionv1.Connect:
	default:
		return Errored(http.StatusBadRequest, fmt.Errorf("unknown operation %q", r.Operation))
	}
	if err != nil {
		return refusedBy(err).WithWarnings(warnings...)
	}
	return Allowed("").WithWarnings(warnings...)
}
