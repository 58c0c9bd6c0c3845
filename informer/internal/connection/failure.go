package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/objects"
)

// Failure is what a failed list or watch means to a reflector. Servers report one condition in many forms; Classify is
// the only function that knows them.
type Failure int

const (
	// Closed: the server ended the watch in good order, at its timeout.
	Closed Failure = iota
	// Early: the server ended the watch in good order, but before its timeout. It may be shutting down, and the server
	// that answers next, even behind the same load balancer, may have another history.
	Early
	// Silent: the server sent nothing for longer than it may. The connection is half open.
	Silent
	// Broken: there is no connection, or it broke. Unrecognised errors count as this.
	Broken
	// Expired: the server no longer has that much history (410, in any of its forms).
	Expired
	// Ahead: the client has seen a later version than the server. The server is a lagging replica, or its history went
	// back.
	Ahead
	// ServerError: the server cannot answer now (500, 503, 504).
	ServerError
	// Busy: the server wants fewer requests (429).
	Busy
	// Refused: the server rejects the request (401, 403, 404, 405, 406, 415, 422). Repeating it helps only after
	// something was changed: a permission, for example.
	Refused
	// Past: the server sent an event or a bookmark from before the position.
	Past
	// Unverifiable: the server sent, from before the position, an object that the cache does not hold, or that cannot
	// be decoded. The object may have been deleted or changed since, or the server may have left it out before; both
	// have been seen. Only a list can tell.
	Unverifiable
	// Endless: the server does not mark the end of a streamed list.
	Endless
	// History: another informer has noticed that the server's history ended.
	History
	// Malformed: the answer is not valid, or a transform failed on it.
	Malformed
	// Failures is the number of failures.
	Failures
)

func (f Failure) String() string {
	return [...]string{
		"closed", "closed early", "silent", "broken", "expired", "version ahead", "server error", "busy", "refused",
		"earlier version", "unverifiable", "incomplete list", "history ended", "malformed",
	}[f]
}

// The errors that a reflector detects itself.
var (
	ErrSilent       = errors.New("the connection was silent for too long")
	ErrEndless      = errors.New("the server did not complete the streaming list")
	ErrPast         = errors.New("the server sent an earlier resource version")
	ErrUnverifiable = errors.New("the server sent an earlier state of an object that is not in the cache")
	ErrAtOnce       = errors.New("the server closed the watch immediately")
	ErrHistory      = errors.New("the server's history has ended")
	ErrNil          = &objects.DecodeError{What: "object", Err: errors.New("the ListerWatcher returned nil")}
	ErrAhead        = errors.New("the server answered with an earlier resource version than requested")
)

// TransformError reports that Options.Transform failed on an object.
type TransformError struct {
	Object string
	Err    error
}

func (e *TransformError) Error() string { return fmt.Sprintf("transform %s: %v", e.Object, e.Err) }

func (e *TransformError) Unwrap() error { return e.Err }

// Classify returns what err means. ctx is the context of the request.
func Classify(ctx context.Context, err error) Failure {
	var (
		decode    *objects.DecodeError
		transform *TransformError
		status    apierrors.APIStatus
	)
	switch {
	case errors.Is(err, io.EOF):
		return Closed
	case errors.Is(context.Cause(ctx), ErrSilent):
		return Silent
	case errors.Is(context.Cause(ctx), ErrEndless):
		return Endless
	case errors.Is(context.Cause(ctx), ErrHistory):
		return History
	case errors.As(err, &decode), errors.As(err, &transform):
		return Malformed
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return Expired
	case errors.Is(err, ErrPast):
		return Past
	case errors.Is(err, ErrUnverifiable):
		return Unverifiable
	case errors.Is(err, ErrAhead), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return Ahead
	case !errors.As(err, &status):
		return Broken
	case status.Status().Code == 429:
		return Busy
	case status.Status().Code >= 500:
		return ServerError
	case status.Status().Code >= 400:
		return Refused
	default:
		return Broken
	}
}

// FromGateway reports whether a gateway or a load balancer may have answered in place of the server (502, 503, 504).
func FromGateway(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 502 && status.Status().Code <= 504
}

// mostRetryAfter limits the Retry-After of a server. The server may have used another unit, and a cache that stands
// still for a day is worse than a request too early.
const mostRetryAfter = 5 * time.Minute

// RetryAfter returns how long the server asked the client to wait, at most five minutes.
func RetryAfter(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return min(time.Duration(seconds)*time.Second, mostRetryAfter)
	}
	return 0
}

// Forbids reports whether the server will repeat its answer until a permission is granted or the credentials are
// changed, or for ever because the resource has no such verb. It does not report a kind that is not defined. That error
// is a NotFound, which the reader of one object would take to mean that the object does not exist.
func Forbids(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err)
}
