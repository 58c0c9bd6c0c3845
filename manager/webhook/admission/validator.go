package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Validator refuses operations. An error refuses; an error of the API, such as apierrors.NewInvalid, is passed on with
// its code and reason. Warnings are shown to the user in both cases. Use [RequestFromContext] for the operation and its
// user.
//
// Concurrency: the methods are called by several goroutines at once. Changes that they make to the objects are lost.
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

// typed makes a Validator of any object from a Validator of T.
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

// Defaulter sets fields of objects before they are stored: of those that are created and, if the webhook's
// configuration says so, of those that are updated.
type Defaulter[T runtime.Object] interface {
	// Default changes obj. An error refuses the operation; an error of the API, such as apierrors.NewInvalid, is passed
	// on with its code and reason. Use [RequestFromContext] for the operation and its user.
	//
	// Concurrency: it is called by several goroutines at once.
	Default(ctx context.Context, obj T) error
}

// WithDefaulter returns a webhook that calls d for objects of type T, which must be in the scheme.
//
// The answer changes only what d changed. Everything else of the object that was sent stays as it is, also fields that
// T does not have, at any depth, and explicit zeros that T would leave out. The answer has no patch if d changed
// nothing. DELETE and CONNECT are allowed without a call of d.
func WithDefaulter[T runtime.Object](scheme *runtime.Scheme, d Defaulter[T]) *Webhook {
	call := func(ctx context.Context, obj runtime.Object) error { return d.Default(ctx, obj.(T)) }
	return &Webhook{Handler: &defaulting{NewDecoder(scheme), empty(exampleOf[T]()), call}}
}

// WithCustomDefaulter is [WithDefaulter] for objects whose type is that of the example.
func WithCustomDefaulter(scheme *runtime.Scheme, example runtime.Object, d Defaulter[runtime.Object]) *Webhook {
	return &Webhook{Handler: &defaulting{NewDecoder(scheme), empty(example), d.Default}}
}

type defaulting struct {
	decoder Decoder
	empty   func() runtime.Object
	call    func(context.Context, runtime.Object) error
}

// Handle implements [Handler].
func (d *defaulting) Handle(ctx context.Context, r Request) Response {
	if r.Operation == admissionv1.Delete || r.Operation == admissionv1.Connect {
		return Allowed("")
	}
	obj := d.empty()
	if err := d.decoder.Decode(r, obj); err != nil {
		return Errored(http.StatusBadRequest, err)
	}
	before := obj.DeepCopyObject()
	if err := d.call(ctx, obj); err != nil {
		return refusedBy(err)
	}
	if reflect.DeepEqual(before, obj) {
		return Allowed("")
	}
	patches, err := patchOf(r.Object.Raw, before, obj)
	if err != nil {
		return Errored(http.StatusInternalServerError, err)
	}
	return Patched("", patches...)
}

// patchOf returns the patch of raw that makes the change from before to after, where before is what raw was decoded to.
func patchOf(raw []byte, before, after runtime.Object) ([]JSONPatchOp, error) {
	var trees [3]any
	for i, obj := range []runtime.Object{before, after} {
		text, err := json.Marshal(obj)
		if err == nil {
			trees[i], err = decodeTree(text)
		}
		if err != nil {
			return nil, fmt.Errorf("encode %T: %w", obj, err)
		}
	}
	original, err := decodeTree(raw)
	if err != nil {
		return nil, fmt.Errorf("decode the object: %w", err)
	}
	return diff("", original, merge(original, trees[0], trees[1])), nil
}
