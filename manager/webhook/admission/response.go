package admission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Response is the answer to a [Request]. Make it with [Allowed], [Denied], [Errored], [Patched] or
// [PatchResponseFromRaw].
type Response struct {
	// Patches change the object. They are used only if the operation is allowed, and then replace Patch.
	Patches []JSONPatchOp
	admissionv1.AdmissionResponse
}

// Warnings are shown to the user of the operation, whether it is allowed or denied. The API server cuts texts of more
// than 256 characters.
type Warnings []string

// Allowed allows the operation. The message may be empty.
func Allowed(message string) Response { return ValidationResponse(true, message) }

// Denied refuses the operation. The user sees the message.
func Denied(message string) Response { return ValidationResponse(false, message) }

// ValidationResponse is [Allowed] or [Denied].
func ValidationResponse(allowed bool, message string) Response {
	result := &metav1.Status{Code: http.StatusOK, Message: message}
	if !allowed {
		result.Code, result.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	return Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: allowed, Result: result}}
}

// Errored refuses the operation because the webhook failed. code is an HTTP status.
func Errored(code int32, err error) Response {
	message := "the webhook failed"
	if err != nil {
		message = err.Error()
	}
	return refused(metav1.Status{Code: code, Message: message})
}

// Patched allows the operation and changes the object by patches.
func Patched(message string, patches ...JSONPatchOp) Response {
	r := Allowed(message)
	r.Patches = patches
	return r
}

// PatchResponseFromRaw allows the operation and changes the object from original to current, both as JSON. Pass
// Request.Object.Raw as the original. Fields that current lacks are removed, so make current from the raw object, not
// from a Go type that may lack fields.
func PatchResponseFromRaw(original, current []byte) Response {
	patches, err := diffRaw(original, current)
	if err != nil {
		return Errored(http.StatusInternalServerError, err)
	}
	return Patched("", patches...)
}

// WithWarnings returns the response with more warnings.
func (r Response) WithWarnings(warnings ...string) Response {
	r.Warnings = append(r.Warnings[:len(r.Warnings):len(r.Warnings)], warnings...)
	return r
}

func refused(status metav1.Status) Response {
	return Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
}

// refusedBy returns the response to an error of a Defaulter or Validator. An error of the API, such as
// apierrors.NewInvalid, is passed on with its code and reason.
func refusedBy(err error) Response {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return refused(status.Status())
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return refused(metav1.Status{
			Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
			Message: fmt.Sprintf("the webhook did not finish in time: %v", err),
		})
	}
	return Denied(err.Error())
}

// Complete fills in what the protocol demands of an answer to the request: its UID, a status code, the patch with its
// type. A [Webhook] calls it.
//
// Errors: a patch that cannot be encoded.
func (r *Response) Complete(to Request) error {
	r.UID = to.UID
	status := metav1.Status{}
	if r.Result != nil {
		status = *r.Result
	}
	status.Code = cmp.Or(status.Code, http.StatusOK)
	r.Result = &status
	if !r.Allowed {
		r.Patch, r.PatchType = nil, nil
		return nil
	}
	if len(r.Patches) > 0 {
		patch, err := json.Marshal(r.Patches)
		if err != nil {
			return fmt.Errorf("encode the patch: %w", err)
		}
		r.Patch = patch
	}
	r.PatchType = nil
	if len(r.Patch) > 0 {
		format := admissionv1.PatchTypeJSONPatch
		r.PatchType = &format
	}
	return nil
}

// Request is a request to admit an operation. Its fields are those of the API: the operation (Operation), the object
// (Kind, Name, Namespace, SubResource), the user (UserInfo), the object as it would be stored (Object), and the stored
// object (OldObject, for UPDATE and DELETE).
type Request struct {
	admissionv1.AdmissionRequest
}

// IsDryRun reports whether nothing of this operation will be stored. A handler must then have no side effects.
func (r Request) IsDryRun() bool { return r.DryRun != nil && *r.DryRun }

type requestKey struct{}

// NewContextWithRequest returns a context that carries the request.
func NewContextWithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// RequestFromContext returns the request that a [Defaulter] or [Validator] is called for: its user, its operation,
// whether it is a dry run.
//
// Errors: ctx is not that of a webhook's request.
func RequestFromContext(ctx context.Context) (Request, error) {
	if r, ok := ctx.Value(requestKey{}).(Request); ok {
		return r, nil
	}
	return Request{}, errors.New(
		"the context carries no admission request: pass on the context that the webhook was called with",
	)
}
