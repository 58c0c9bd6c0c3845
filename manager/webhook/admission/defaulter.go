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
