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
	"github.com/flyball-dev/flyball/informer/internal/objects"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/versions"
)

const (
	// repeatLog is how often a failure that goes on is logged again.
	repeatLog = 5 * time.Minute
	// flapLog is how long a failure that was logged, has ended, and is back with the same words is not logged again.
	flapLog = time.Minute
)

// Status is the state of one reflector's connection to the server: what informer.Health and
// informer.Stats report, and what is worth a line in the log.
type Status struct {
	Counters
	resource, namespace string
	onError             func(context.Context, error)
	// news is announced after each failure; nil when nobody listens.
	news *broadcast.Broadcast
	// Server is shared by all informers of the server.
	Server *Server
	// Interrupter ends what the reflector is doing when the cache is not to be believed.
	*Interrupter

	mu sync.Mutex
	// err is the last failure since both a list and a watch succeeded; nil when all is well.
	err *RequestError
	// since is when the run of failures began, or, when err is nil, when it ended; zero before the first attempt
	// ended.
	since  time.Time
	logged logDedup
	// unread has, by key, the objects that are there in a state that could not be decoded. Written by the reflector
	// only.
	unread map[string]*objects.DecodeError
}

// StatusOptions configure a [Status]. The zero value works.
type StatusOptions struct {
	// Resource and Namespace stand in errors and logs.
	Resource, Namespace string
	// Server is what is known of the server; nil is nothing.
	Server *Server
	// Failed is announced after each failure; nil when nobody listens.
	Failed *broadcast.Broadcast
	// OnError is told of every failure; may be nil.
	OnError func(context.Context, error)
}

// NewStatus returns the status of a reflector that has not begun.
func NewStatus(o StatusOptions) *Status {
	if o.Server == nil {
		o.Server = NewServer(nil)
	}
	return &Status{
		resource: o.Resource, namespace: o.Namespace, onError: o.OnError, news: o.Failed, Server: o.Server,
		Interrupter: newInterrupter(),
	}
}

// Follow has the status take part in what is known of the server, until the returned function is called.
func (l *Status) Follow() (leave func()) {
	leaveServer := l.Server.join(l.Interrupter)
	return func() {
		leaveServer()
		l.Server.outage.recovered(l, false)
	}
}

// AnyUnreadable reports whether an object cannot be decoded. Only the reflector may ask, which alone changes the
// answer.
func (l *Status) AnyUnreadable() bool { return len(l.unread) > 0 }

// Failed notes a failure. The first of its kind is logged, repetitions only now and then: an outage of an hour is a
// few lines, not thousands, however many informers the server has; see outage. What is refused is one line: it
// stays so until somebody changes something, and Health says it.
func (l *Status) Failed(ctx context.Context, verb string, err error) {
	l.Errors.Add(1)
	e := &RequestError{Verb: verb, Resource: l.resource, Namespace: l.namespace, Err: err}
	text, now := e.Error(), time.Now()
	kind := failureKind{
		Classify(ctx, err), apierrors.ReasonForError(err),
		errors.As(err, new(*listwatch.UnknownKindError)),
	}
	n := noNews
	if kind.failure.unreachable() {
		n = l.Server.outage.failed(l, err.Error(), now)
	} else {
		l.Answered(ctx) // With a refusal, for example.
	}

	l.mu.Lock()
	if l.err == nil {
		l.since = now
	}
	l.err = e
	if !kind.failure.unreachable() && l.logged.isNews(kind, text, now) {
		n = resourceNews
	}
	since := l.since
	l.mu.Unlock()

	if l.news != nil {
		l.news.Announce()
	}
	if l.onError != nil {
		l.onError(ctx, e)
	}
	log := klog.FromContext(ctx)
	switch n {
	case serverNews:
		log.Info("API server is unavailable", "reason", text, "duration", now.Sub(since))
	case resourceNews:
		log.Info("Failed to list or watch resource", "reason", text, "duration", now.Sub(since))
	default:
		log.V(4).Info("Still failing to list or watch resource", "reason", text)
	}
}

// Answered notes that the server is there. The end of an outage is logged.
func (l *Status) Answered(ctx context.Context) {
	switch n, begun := l.Server.outage.recovered(l, true); n {
	case serverNews:
		klog.FromContext(ctx).Info("API server is available again", "duration", time.Since(begun))
	case resourceNews:
		klog.FromContext(ctx).Info("Listing and watching resource again", "duration", time.Since(begun))
	}
}

// Unreadable notes an object that could not be decoded. It is logged once for as long as it stays so.
func (l *Status) Unreadable(ctx context.Context, e *objects.DecodeError) {
	l.mu.Lock()
	_, known := l.unread[e.Key]
	if l.unread == nil {
		l.unread = map[string]*objects.DecodeError{}
	}
	l.unread[e.Key] = e
	l.mu.Unlock()
	log := klog.FromContext(ctx)
	if known {
		log = log.V(4)
	}
	log.Info("Failed to decode object; the cache keeps its last decodable state", "object", e.Key,
		"resourceVersion", e.Version, "reason", e.Err.Error())
}

// Readable notes that what is under key can be decoded, or is gone, as of a version.
func (l *Status) Readable(key, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.unread[key]; e != nil && !versions.Earlier(version, e.Version) {
		delete(l.unread, key)
	}
}

// Listed notes a complete list and what of it could not be decoded. It does not take back that watching fails.
func (l *Status) Listed(ctx context.Context, unreadable []*objects.DecodeError) {
	still := make(map[string]bool, len(unreadable))
	for _, e := range unreadable {
		still[e.Key] = true
		l.Unreadable(ctx, e)
	}
	l.mu.Lock()
	maps.DeleteFunc(l.unread, func(key string, _ *objects.DecodeError) bool { return !still[key] })
	if l.since.IsZero() || l.err != nil && l.err.Verb == "list" {
		l.recoverLocked()
	}
	l.mu.Unlock()
}

// Watching notes that a watch is open. The end of what was logged is logged, too.
func (l *Status) Watching(ctx context.Context) {
	l.Answered(ctx)
	l.mu.Lock()
	if l.err != nil {
		l.recoverLocked()
	}
	begun := l.logged.begun
	l.logged.begun = time.Time{}
	l.mu.Unlock()
	if !begun.IsZero() {
		klog.FromContext(ctx).Info("Listing and watching resource again", "duration", time.Since(begun))
	}
}

func (l *Status) recoverLocked() {
	l.err, l.since = nil, time.Now()
	clear(l.logged.kinds)
}

// Unreadables returns how many objects cannot be decoded, and the error of the first by key.
func (l *Status) Unreadables() (n int, first error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unread) == 0 {
		return 0, nil
	}
	return len(l.unread), l.unread[slices.Min(slices.Collect(maps.Keys(l.unread)))]
}

// ListFails reports whether the last failure, which still lasts, was that of a list.
func (l *Status) ListFails() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil && l.err.Verb == "list"
}

// Health returns since when which failure lasts, or, with nil, since when there is none.
func (l *Status) Health() (since time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return l.since, nil
	}
	return l.since, l.err
}

// logDedup keeps a failure that goes on from filling the log. It has what was logged.
type logDedup struct {
	// kinds has when each kind of failure was logged last. Invariant: empty when nothing fails.
	kinds map[failureKind]time.Time
	// words and at are the last line.
	words string
	at    time.Time
	// begun is when the first failure was logged that is not over; zero when the log knows of none.
	begun time.Time
}

// failureKind tells failures apart that are worth a line each. The verb does not: without a permission a watch
// fails, and then the list that is tried instead.
type failureKind struct {
	failure Failure
	reason  metav1.StatusReason
	// unknown says that the server has no such kind: more than that there is nothing to watch.
	unknown bool
}

// isNews reports whether a failure is worth a line, and notes that it got one.
func (t *logDedup) isNews(kind failureKind, words string, now time.Time) bool {
	if last, before := t.kinds[kind]; before {
		if kind.failure == Refused || now.Sub(last) < repeatLog {
			return false
		}
	} else if words == t.words && now.Sub(t.at) < flapLog {
		return false
	}
	if t.kinds == nil {
		t.kinds = map[failureKind]time.Time{}
	}
	if t.begun.IsZero() {
		t.begun = now
	}
	t.kinds[kind], t.words, t.at = now, words, now
	return true
}
