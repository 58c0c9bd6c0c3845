package parts

import (
	"context"
	"encoding/json"
	"net/http"
	"os"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	ours "github.com/flyball-dev/flyball/manager/webhook/admission"
)

// AdmissionHooks are the functions in the place of those of controller-runtime's package admission. Its handlers are
// called by our webhook, and ours by its.
type AdmissionHooks struct {
	// Handle and Serve are the methods Handle and ServeHTTP of a Webhook, with its logger.
	Handle func(context.Context, *admission.Webhook, logr.Logger, admission.Request) admission.Response
	Serve  func(*admission.Webhook, logr.Logger, http.ResponseWriter, *http.Request)
	// Defaulter, Validator, Mutating and Validating are the handlers of WithCustomDefaulter, WithCustomValidator,
	// MultiMutatingHandler and MultiValidatingHandler.
	Defaulter            func(*runtime.Scheme, runtime.Object, admission.CustomDefaulter) admission.Handler
	Validator            func(*runtime.Scheme, runtime.Object, admission.CustomValidator) admission.Handler
	Mutating, Validating func(...admission.Handler) admission.Handler
	Decoder              func(*runtime.Scheme) admission.Decoder
}

// Admission returns the hooks; nil: controller-runtime's own functions.
func Admission() *AdmissionHooks {
	if os.Getenv(Env) != Webhooks {
		return nil
	}
	return &AdmissionHooks{
		Handle: func(
			ctx context.Context, w *admission.Webhook, log logr.Logger, r admission.Request,
		) admission.Response {
			return toTheirs(hookOf(w).Handle(logr.NewContext(ctx, log), ours.Request(r)))
		},
		Serve: func(w *admission.Webhook, log logr.Logger, out http.ResponseWriter, in *http.Request) {
			hookOf(w).ServeHTTP(out, in.WithContext(logr.NewContext(in.Context(), log)))
		},
		Defaulter: func(s *runtime.Scheme, example runtime.Object, d admission.CustomDefaulter) admission.Handler {
			return asTheirs{ours.WithCustomDefaulter(s, example, d).Handler}
		},
		Validator: func(s *runtime.Scheme, example runtime.Object, v admission.CustomValidator) admission.Handler {
			return asTheirs{ours.WithCustomValidator(s, example, validator{v}).Handler}
		},
		Mutating: func(all ...admission.Handler) admission.Handler {
			return asTheirs{ours.MultiMutatingHandler(allAsOurs(all)...)}
		},
		Validating: func(all ...admission.Handler) admission.Handler {
			return asTheirs{ours.MultiValidatingHandler(allAsOurs(all)...)}
		},
		Decoder: func(s *runtime.Scheme) admission.Decoder { return decoder{ours.NewDecoder(s)} },
	}
}

// hookOf returns our webhook with the handler and the functions of theirs.
func hookOf(w *admission.Webhook) *ours.Webhook {
	chosen(Webhooks)
	hook := &ours.Webhook{WithContextFunc: w.WithContextFunc}
	if w.Handler != nil {
		hook.Handler = asOurs{w.Handler}
	}
	if f := w.LogConstructor; f != nil {
		hook.LogConstructor = func(base logr.Logger, r *ours.Request) logr.Logger {
			theirs := admission.Request(*r)
			return f(base, &theirs)
		}
	}
	return hook
}

// asOurs is a handler of theirs as one of ours.
type asOurs struct {
	admission.Handler
}

func (h asOurs) Handle(ctx context.Context, r ours.Request) ours.Response {
	theirs := h.Handler.Handle(ctx, admission.Request(r))
	response := ours.Response{AdmissionResponse: theirs.AdmissionResponse}
	for _, p := range theirs.Patches {
		response.Patches = append(response.Patches, ours.JSONPatchOp(p))
	}
	return response
}

func allAsOurs(theirs []admission.Handler) (all []ours.Handler) {
	for _, h := range theirs {
		all = append(all, asOurs{h})
	}
	return all
}

// asTheirs is a handler of ours as one of theirs.
type asTheirs struct {
	ours.Handler
}

func (h asTheirs) Handle(ctx context.Context, r admission.Request) admission.Response {
	chosen(Webhooks)
	return toTheirs(h.Handler.Handle(admission.NewContextWithRequest(ctx, r), ours.Request(r)))
}

// toTheirs returns a response of ours as one of theirs. Ours leaves numbers in patches as they are written; they become
// those of encoding/json.
func toTheirs(r ours.Response) admission.Response {
	response := admission.Response{AdmissionResponse: r.AdmissionResponse}
	for _, p := range r.Patches {
		operation := jsonpatch.Operation{Operation: p.Operation, Path: p.Path}
		if text, err := json.Marshal(p.Value); err == nil {
			_ = json.Unmarshal(text, &operation.Value) // what was just encoded
		}
		response.Patches = append(response.Patches, operation)
	}
	return response
}

// validator has the warnings of ours.
type validator struct {
	admission.CustomValidator
}

func (v validator) ValidateCreate(ctx context.Context, obj runtime.Object) (ours.Warnings, error) {
	w, err := v.CustomValidator.ValidateCreate(ctx, obj)
	return ours.Warnings(w), err
}

func (v validator) ValidateUpdate(ctx context.Context, old, obj runtime.Object) (ours.Warnings, error) {
	w, err := v.CustomValidator.ValidateUpdate(ctx, old, obj)
	return ours.Warnings(w), err
}

func (v validator) ValidateDelete(ctx context.Context, obj runtime.Object) (ours.Warnings, error) {
	w, err := v.CustomValidator.ValidateDelete(ctx, obj)
	return ours.Warnings(w), err
}

// decoder decodes requests of theirs.
type decoder struct {
	ours.Decoder
}

func (d decoder) Decode(r admission.Request, into runtime.Object) error {
	return d.Decoder.Decode(ours.Request(r), into)
}
