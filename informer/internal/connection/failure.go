package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/objects"
)

// Failure is what a failed list or watch means to a reflector. The server says one thing in many forms; this is the
// one place that knows them.
type Failure int

const (
	// Closed: the server ended the stream in good order, when it had lasted as long as it was asked for.
	Closed Failure = iota
	// Early: the server ended the stream in good order, but earlier. It may be going away, and what answers the
	// next request, be it through the same load balancer, may have another history.
	Early
	// Silent: nothing was heard for longer than the server may be silent. The connection is half open.
	Silent
	// Broken: no connection, or it broke, or whatever is not recognised.
	Broken
	// Expired: the server does not have that much history any more (410, in any of its forms).
	Expired
	// Ahead: the server has not got so far yet: a replica that lags, or history that went back.
	Ahead
	// ServerError: the server is there and cannot do it now (500, 503, 504).
	ServerError
	// Busy: the server wants to be asked less (429).
	Busy
	// Refused: the server will not do it: 401, 403, 404, 405, 406, 415, 422. Asking the same way again only helps
	// when somebody changes something.
	Refused
	// Past: the server sent an event or a bookmark from before the position.
	Past
	// Unverifiable: the server sent, from before the position, an object that the cache does not hold, or that
	// cannot be decoded. It may have been deleted or changed since, or the server had left it out: both have
	// happened. Only a list tells.
	Unverifiable
	// Endless: the server does not end the objects of a streamed list.
	Endless
	// History: the server's history has ended, as another informer has noticed.
	History
	// Malformed: the answer made no sense, or a transform failed on it.
	Malformed
	// Failures is their number.
	Failures
)

func (f Failure) String() string {
	return [...]string{
		"closed", "closed early", "silent", "broken", "expired", "ahead", "server error", "busy", "refused", "past",
		"unverifiable", "endless", "history", "malformed",
	}[f]
}

// The errors that a reflector finds by itself.
var (
	ErrSilent       = errors.New("the connection was silent for too long")
	ErrEndless      = errors.New("the server did not complete the streaming list")
	ErrPast         = errors.New("the server sent an earlier resource version")
	ErrUnverifiable = errors.New("the server sent an earlier state of an object that is not in the cache")
	ErrAtOnce       = errors.New("the server closed the watch immediately")
	ErrHistory      = errors.New("the server's history has ended")
	ErrNil          = &objects.DecodeError{What: "object", Err: errors.New("the ListerWatcher returned nil")}
	ErrStale        = errors.New("the server answered with an earlier resource version than requested")
)

// TransformError says that Options.Transform failed on an object.
type TransformError struct {
	Object string
	Err    error
}

func (e *TransformError) Error() string { return fmt.Sprintf("transform %s: %v", e.Object, e.Err) }

func (e *TransformError) Unwrap() error { return e.Err }

// Classify finds out what err means; ctx is that of the request.
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
	case errors.Is(err, ErrStale), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
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

// FromGateway reports whether it may have been a gateway or a load balancer that answered, for want of a server
// (502, 503, 504).
func FromGateway(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 502 && status.Status().Code <= 504
}

// mostRetryAfter bounds how long a server is not asked because it said so. It may have meant another unit, and a cache
// that stands still for a day is worse than a request too early.
const mostRetryAfter = 5 * time.Minute

// RetryAfter is how long the server asked not to be asked again, at most five minutes.
func RetryAfter(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return min(time.Duration(seconds)*time.Second, mostRetryAfter)
	}
	return 0
}
