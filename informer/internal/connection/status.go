package connection

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/internal/broadcast"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/versions"
)

const (
	// repeatLog is how often a lasting failure is logged again.
	repeatLog = 5 * time.Minute
	// flapLog is how long a failure that ended and came back with the same text is not logged again.
	flapLog = time.Minute
)

// Status is the state of one reflector's connection to the server. informer.Health and informer.Stats report it, and it
// decides what goes into the log.
type Status struct {
	Counters
	resource, namespace string
	onError             func(context.Context, error)
	// failed is announced after each failure; may be nil.
	failed *broadcast.Broadcast
	// Server is shared by all informers of the server.
	Server *Server
	// Interrupter makes the reflector list anew when its cache cannot be trusted.
	*Interrupter

	mu sync.Mutex
	// err is the last failure; nil once both a list and a watch have succeeded after it.
	err *listwatch.RequestError
	// since is when the current run of failures began or, if err is nil, when the last one ended. Zero before the first
	// attempt.
	since  time.Time
	logged logDedup
	// unread has, by key, the existing objects whose state could not be decoded. Only the reflector writes it.
	unread map[string]*objects.DecodeError
}

// StatusOptions configure a [Status]. The zero value works.
type StatusOptions struct {
	// Resource and Namespace appear in errors and logs.
	Resource, Namespace string
	// Server is shared by all informers of the server; nil means a Server of its own.
	Server *Server
	// Failed is announced after each failure; may be nil.
	Failed *broadcast.Broadcast
	// OnError is called after each failure; may be nil.
	OnError func(context.Context, error)
}

// NewStatus returns the status of a reflector that has not begun.
func NewStatus(o StatusOptions) *Status {
	if o.Server == nil {
		o.Server = NewServer(nil)
	}
	return &Status{
		resource: o.Resource, namespace: o.Namespace, onError: o.OnError, failed: o.Failed, Server: o.Server,
		Interrupter: newInterrupter(),
	}
}

// Follow registers the reflector with the Server, until the returned function is called.
func (s *Status) Follow() (leave func()) {
	leaveServer := s.Server.join(s.Interrupter)
	return func() {
		leaveServer()
		s.Server.outage.recovered(s, false)
	}
}

// AnyUnreadable reports whether there are objects that cannot be decoded. It takes no lock, so only the reflector,
// which alone writes unread, may call it.
func (s *Status) AnyUnreadable() bool { return len(s.unread) > 0 }

// Failed records a failure, and logs it if it is new. Repetitions are logged only now and then, so an outage of an hour
// is a few lines, not thousands, however many informers the server has; see outage. A rejected request is logged once:
// it will be rejected until something is changed, and Health shows it.
func (s *Status) Failed(ctx context.Context, verb string, err error) {
	s.Errors.Add(1)
	e := &listwatch.RequestError{Verb: verb, Resource: s.resource, Namespace: s.namespace, Err: err}
	text, now := e.Error(), time.Now()
	kind := failureKind{
		Classify(ctx, err), apierrors.ReasonForError(err),
		errors.As(err, new(*listwatch.UnknownKindError)),
	}
	log := logNothing
	if kind.failure.unreachable() {
		log = s.Server.outage.failed(s, err.Error(), now)
	} else {
		s.Answered(ctx) // The server did answer, if only to reject the request.
	}

	s.mu.Lock()
	if s.err == nil {
		s.since = now
	}
	s.err = e
	if !kind.failure.unreachable() && s.logged.shouldLog(kind, text, now) {
		log = logResource
	}
	since := s.since
	s.mu.Unlock()

	if s.failed != nil {
		s.failed.Announce()
	}
	if s.onError != nil {
		s.onError(ctx, e)
	}
	logger := klog.FromContext(ctx)
	switch log {
	case logServer:
		logger.Info("API server is unavailable", "reason", text, "duration", now.Sub(since))
	case logResource:
		logger.Info("Failed to list or watch resource", "reason", text, "duration", now.Sub(since))
	default:
		logger.V(4).Info("Still failing to list or watch resource", "reason", text)
	}
}

// Answered records that the server is reachable. It logs the end of an outage.
func (s *Status) Answered(ctx context.Context) {
	switch log, begun := s.Server.outage.recovered(s, true); log {
	case logServer:
		klog.FromContext(ctx).Info("API server is available again", "duration", time.Since(begun))
	case logResource:
		klog.FromContext(ctx).Info("Listing and watching resource again", "duration", time.Since(begun))
	}
}

// Unreadable records an object that could not be decoded. It is logged again only after it was readable in between.
func (s *Status) Unreadable(ctx context.Context, e *objects.DecodeError) {
	s.mu.Lock()
	_, known := s.unread[e.Key]
	if s.unread == nil {
		s.unread = map[string]*objects.DecodeError{}
	}
	s.unread[e.Key] = e
	s.mu.Unlock()
	log := klog.FromContext(ctx)
	if known {
		log = log.V(4)
	}
	log.Info("Failed to decode object; the cache keeps its last decodable state", "object", e.Key,
		"resourceVersion", e.Version, "reason", e.Err.Error())
}

// Readable records that, as of a version, the object under key can be decoded, or is gone.
func (s *Status) Readable(key, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.unread[key]; e != nil && !versions.Earlier(version, e.Version) {
		delete(s.unread, key)
	}
}

// Listed records a complete list, with its objects that could not be decoded. A failure to watch stays recorded.
func (s *Status) Listed(ctx context.Context, unreadable []*objects.DecodeError) {
	still := make(map[string]bool, len(unreadable))
	for _, e := range unreadable {
		still[e.Key] = true
		s.Unreadable(ctx, e)
	}
	s.mu.Lock()
	maps.DeleteFunc(s.unread, func(key string, _ *objects.DecodeError) bool { return !still[key] })
	if s.since.IsZero() || s.err != nil && s.err.Verb == "list" {
		s.recoverLocked()
	}
	s.mu.Unlock()
}

// Watching records that a watch is open. If a failure was logged, its end is logged, too.
func (s *Status) Watching(ctx context.Context) {
	s.Answered(ctx)
	s.mu.Lock()
	if s.err != nil {
		s.recoverLocked()
	}
	begun := s.logged.begun
	s.logged.begun = time.Time{}
	s.mu.Unlock()
	if !begun.IsZero() {
		klog.FromContext(ctx).Info("Listing and watching resource again", "duration", time.Since(begun))
	}
}

func (s *Status) recoverLocked() {
	s.err, s.since = nil, time.Now()
	clear(s.logged.kinds)
}

// Unreadables returns how many objects cannot be decoded, and the error of the first by key.
func (s *Status) Unreadables() (n int, first error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unread) == 0 {
		return 0, nil
	}
	return len(s.unread), s.unread[slices.Min(slices.Collect(maps.Keys(s.unread)))]
}

// ListFails reports whether the current failure is one of a list.
func (s *Status) ListFails() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil && s.err.Verb == "list"
}

// Health returns the current failure and when it began or, if there is none, nil and when the last one ended.
func (s *Status) Health() (since time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return s.since, nil
	}
	return s.since, s.err
}

// logDedup keeps a lasting failure from filling the log. It remembers what was logged.
type logDedup struct {
	// kinds has the time at which each kind of failure was logged last. Invariant: empty when nothing fails.
	kinds map[failureKind]time.Time
	// text and at are those of the last line.
	text string
	at   time.Time
	// begun is when the current failure was first logged; zero if it was not, or there is none.
	begun time.Time
}

// failureKind distinguishes failures that deserve a line each. It does not include the verb: without a permission the
// watch fails, and then also the list that is tried instead.
type failureKind struct {
	failure Failure
	reason  metav1.StatusReason
	// unknown is true if the server does not serve the kind. That deserves its own line, though its reason is NotFound
	// as well.
	unknown bool
}

// shouldLog reports whether a failure deserves a line, and records that it got one.
func (d *logDedup) shouldLog(kind failureKind, text string, now time.Time) bool {
	if last, before := d.kinds[kind]; before {
		if kind.failure == Refused || now.Sub(last) < repeatLog {
			return false
		}
	} else if text == d.text && now.Sub(d.at) < flapLog {
		return false
	}
	if d.kinds == nil {
		d.kinds = map[failureKind]time.Time{}
	}
	if d.begun.IsZero() {
		d.begun = now
	}
	d.kinds[kind], d.text, d.at = now, text, now
	return true
}
