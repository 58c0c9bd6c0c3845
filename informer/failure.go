package informer

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

// failure is what a failed list or watch means to a reflector. The server says one thing in many forms; this is the one
// place that knows them.
type failure int

const (
	// failClosed: the server ended the stream in good order, when it had lasted as long as it was asked for.
	failClosed failure = iota
	// failEarly: the server ended the stream in good order, but earlier. It may be going away, and what answers the next request, be
	// it through the same load balancer, may have another history.
	failEarly
	// failSilent: nothing was heard for longer than the server may be silent. The connection is half open.
	failSilent
	// failBroken: no connection, or it broke, or whatever is not recognised.
	failBroken
	// failExpired: the server does not have that much history any more (410, in any of its forms).
	failExpired
	// failAhead: the server has not got so far yet: a replica that lags, or history that went back.
	failAhead
	// failServer: the server is there and cannot do it now (500, 503, 504).
	failServer
	// failBusy: the server wants to be asked less (429).
	failBusy
	// failRefused: the server will not do it: 401, 403, 404, 405, 406, 415, 422. Asking the same way again only helps
	// when somebody changes something.
	failRefused
	// failPast: the server sent an event or a bookmark from before the position.
	failPast
	// failDoubtful: the server sent, from before the position, an object that the cache does not hold, or that cannot be decoded. It may have
	// been deleted or changed since, or the server had left it out: both have happened. Only a list tells.
	failDoubtful
	// failEndless: the server does not end the objects of a streamed list.
	failEndless
	// failHistory: the server's history has ended, as another informer has noticed.
	failHistory
	// failSense: the answer made no sense, or a transform failed on it.
	failSense
	// failures is their number.
	failures
)

func (f failure) String() string {
	return [...]string{"closed", "closed early", "silent", "broken", "expired", "ahead", "server error", "busy", "refused", "past", "doubtful", "endless", "history", "senseless"}[f]
}

var (
	errSilent   = errors.New("the connection is silent for longer than the server promised")
	errEndless  = errors.New("the server does not end a streamed list")
	errPast     = errors.New("the server sent a version from the past")
	errDoubtful = errors.New("the server sent an object from the past that the cache does not know")
	errAtOnce   = errors.New("the server closed the watch at once")
	errHistory  = errors.New("the server's history has ended")
	errNil      = &objects.DecodeError{What: "object", Err: errors.New("the ListerWatcher gave nil")}
	errStale    = errors.New("the server answered from an earlier state than it was asked for")
)

// TransformError says that Options.Transform failed on an object.
type TransformError struct {
	Object string
	Err    error
}

func (e *TransformError) Error() string { return fmt.Sprintf("transform %s: %v", e.Object, e.Err) }

func (e *TransformError) Unwrap() error { return e.Err }

// classify finds out what err means; ctx is that of the request.
func classify(ctx context.Context, err error) failure {
	var (
		decode    *objects.DecodeError
		transform *TransformError
		status    apierrors.APIStatus
	)
	switch {
	case errors.Is(err, io.EOF):
		return failClosed
	case errors.Is(context.Cause(ctx), errSilent):
		return failSilent
	case errors.Is(context.Cause(ctx), errEndless):
		return failEndless
	case errors.Is(context.Cause(ctx), errHistory):
		return failHistory
	case errors.As(err, &decode), errors.As(err, &transform):
		return failSense
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return failExpired
	case errors.Is(err, errPast):
		return failPast
	case errors.Is(err, errDoubtful):
		return failDoubtful
	case errors.Is(err, errStale), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return failAhead
	case !errors.As(err, &status):
		return failBroken
	case status.Status().Code == 429:
		return failBusy
	case status.Status().Code >= 500:
		return failServer
	case status.Status().Code >= 400:
		return failRefused
	default:
		return failBroken
	}
}

// fromGateway reports whether it may have been a gateway or a load balancer that answered, for want of a server (502, 503, 504).
func fromGateway(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 502 && status.Status().Code <= 504
}

// retryAfter is how long the server asked not to be asked again.
func retryAfter(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return time.Duration(seconds) * time.Second
	}
	return 0
}
