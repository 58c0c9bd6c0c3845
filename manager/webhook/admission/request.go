package admission

import (
	"context"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
)

// Request is a request to admit an operation. Its fields are those of the API: what is done (Operation) to which object
// (Kind, Name, Namespace, SubResource), by whom (UserInfo), the object as it would be stored (Object), and as it is
// stored (OldObject, of UPDATE and DELETE).
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
