package connection

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// RequestError is a failed list or watch, worded for the person who has to do something about it.
type RequestError struct {
	// Verb is "list" or "watch".
	Verb string
	// Resource is as in informer.Health.
	Resource string
	// Namespace is "" for all.
	Namespace string
	Err       error
}

func (e *RequestError) Error() string {
	return fmt.Sprintf("cannot %s %s %s: %s", e.Verb, e.Resource, Where(e.Namespace), Reason(e.Err))
}

func (e *RequestError) Unwrap() error { return e.Err }

// Where words the namespace of a request.
func Where(namespace string) string {
	if namespace == "" {
		return "at the cluster scope"
	}
	return "in namespace " + namespace
}

// Reason words the cause of a failed request without what the sentence around it says already.
func Reason(err error) string {
	var unreachable *url.Error
	if errors.As(err, &unreachable) {
		return "cannot reach " + serverOf(unreachable.URL) + ": " + innermost(unreachable.Err)
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		// The server says `pods is forbidden: User "x" cannot …` or `pods "p" is forbidden: …`.
		message := status.Status().Message
		if _, why, found := strings.Cut(message, " is forbidden: "); found {
			return "forbidden: " + why
		}
		if apierrors.IsUnauthorized(err) {
			return "unauthorized: the server does not accept the credentials: " + message
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the server did not answer in time"
	}
	return err.Error()
}

// serverOf cuts a request's URL down to scheme and host.
func serverOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	return u.Scheme + "://" + u.Host
}

// innermost is the error at the end of the chain: "connection refused" of "dial tcp 127.0.0.1:1: connect:
// connection refused".
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// Refuses reports whether the server will answer so until somebody changes something: a permission is missing, or
// the credentials are not accepted. A kind that is not defined is no refusal: its error is a NotFound, which a
// reader of one object would take for the object's.
func Refuses(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }
