// Package wording words failed requests for errors and logs.
package wording

import (
	"context"
	"errors"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Where words the namespace of a request.
func Where(namespace string) string {
	if namespace == "" {
		return "at the cluster scope"
	}
	return "in namespace " + namespace
}

// Reason words why a request failed. It leaves out what the sentence around it already says.
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

// serverOf returns scheme and host of a request's URL.
func serverOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	return u.Scheme + "://" + u.Host
}

// innermost returns the text of the last error in the chain: "connection refused" for "dial tcp 127.0.0.1:1: connect:
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
