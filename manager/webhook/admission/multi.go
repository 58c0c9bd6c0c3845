package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/flyball-dev/flyball/internal/jsonpatch"
)

// MultiMutatingHandler returns a handler that calls the handlers one after the other. Each receives the object with the
// changes of the handlers before it, and the response has the changes of all. If a handler does not allow the
// operation, its response is the result, and nothing is changed.
//
// Errors: if the patch of a handler cannot be applied to the object that the handler received, or is not a JSONPatch,
// the response has code 500.
func MultiMutatingHandler(handlers ...Handler) Handler { return multiMutating(handlers) }

type multiMutating []Handler

// Handle implements [Handler].
func (m multiMutating) Handle(ctx context.Context, r Request) Response {
	all := Allowed("")
	var operations []json.RawMessage
	for i, handler := range m {
		response := handler.Handle(ctx, r)
		if !response.Allowed {
			return response
		}
		more, err := r.change(ctx, &response)
		if err != nil {
			return Errored(http.StatusInternalServerError, fmt.Errorf("mutating handler %d: %w", i, err))
		}
		operations = append(operations, more...)
		all = all.WithWarnings(response.Warnings...)
	}
	if len(operations) == 0 {
		return all
	}
	format := admissionv1.PatchTypeJSONPatch
	all.Patch, _ = json.Marshal(operations) // cannot fail: the operations were decoded from JSON
	all.PatchType = &format
	return all
}

// change applies the patch of a response to the object of the request, and returns the operations of the patch.
func (r *Request) change(ctx context.Context, by *Response) ([]json.RawMessage, error) {
	if format := by.PatchType; format != nil && *format != admissionv1.PatchTypeJSONPatch {
		return nil, fmt.Errorf("its patch is of type %q, want %q", *format, admissionv1.PatchTypeJSONPatch)
	}
	if err := by.Complete(*r); err != nil {
		return nil, err
	}
	if len(by.Patch) == 0 {
		return nil, nil
	}
	var operations []json.RawMessage
	if err := json.Unmarshal(by.Patch, &operations); err != nil {
		return nil, fmt.Errorf("decode its patch: %w", err)
	}
	if len(r.Object.Raw) == 0 {
		return operations, nil // no object: nothing to show to the next handler
	}
	patch, err := jsonpatch.Decode(by.Patch)
	if err != nil {
		return nil, fmt.Errorf("decode its patch: %w", err)
	}
	if r.Object.Raw, err = patch.Apply(ctx, r.Object.Raw); err != nil {
		return nil, fmt.Errorf("apply its patch: %w", err)
	}
	return operations, nil
}

// MultiValidatingHandler returns a handler that allows what all handlers allow. It calls them one after the other,
// until one does not allow the operation.
func MultiValidatingHandler(handlers ...Handler) Handler { return multiValidating(handlers) }

type multiValidating []Handler

// Handle implements [Handler].
func (m multiValidating) Handle(ctx context.Context, r Request) Response {
	all := Allowed("")
	for _, handler := range m {
		response := handler.Handle(ctx, r)
		if !response.Allowed {
			return response
		}
		all = all.WithWarnings(response.Warnings...)
	}
	return all
}
