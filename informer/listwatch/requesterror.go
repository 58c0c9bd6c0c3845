package listwatch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/wording"
)

// RequestError is a failed list or watch, worded for the person who has to fix it.
type RequestError struct {
	// Verb is "list" or "watch".
	Verb string
	// Resource is the plural name with the group: "deployments.apps".
	Resource string
	// Namespace is "" for all namespaces.
	Namespace string
	Err       error
}

func (e *RequestError) Error() string {
	return fmt.Sprintf("cannot %s %s %s: %s", e.Verb, e.Resource, wording.Where(e.Namespace), wording.Reason(e.Err))
}

func (e *RequestError) Unwrap() error { return e.Err }

// UnknownKindError reports that the server does not serve a kind: a custom resource that is not defined (yet).
type UnknownKindError struct {
	Kind schema.GroupVersionKind
	Err  error
}

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("the server has no kind %s in %s", e.Kind.Kind, e.Kind.GroupVersion())
}

func (e *UnknownKindError) Unwrap() error { return e.Err }
