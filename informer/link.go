package informer

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
)

const (
	// repeatLog is how often a failure that goes on is logged again.
	repeatLog = 5 * time.Minute
	// flapLog is how long a failure that was logged, has ended, and is back with the same words is not logged again.
	flapLog = time.Minute
)

// link is how a reflector stands with its server: what [Health] and [Stats] tell, and what is worth a line in the log.
type link struct {
	counters
	resource, namespace string
	onError             func(context.Context, error) // See ReflectorOptions.
	// news is announced after each failure; nil when nobody listens.
	news *broadcast.Broadcast
	// outage is shared by all informers of the server.
	outage *outage

	mu sync.Mutex
	// err is the last failure since both a list and a watch succeeded; nil when all is well.
	err *RequestError
	// since is when the run of failures began, or, when err is nil, when it ended; zero before the first attempt ended.
	since time.Time
	told  told
	// unread has, by key, the objects that are there in a state that could not be decoded. Written by the reflector only.
	unread map[string]*objects.DecodeError
}

// failed notes a failure. The first of its kind is logged, repetitions only now and then: an outage of an hour is a few
// lines, not thousands, however many informers the server has; see outage. What is refused is one line: it stays so until
// somebody changes something, and Health says it.
func (l *link) failed(ctx context.Context, verb string, err error) {
	l.errors.Add(1)
	e := &RequestError{Verb: verb, Resource: l.resource, Namespace: l.namespace, Err: err}
	text, now := e.Error(), time.Now()
	kind := failureKind{classify(ctx, err), apierrors.ReasonForError(err), errors.As(err, new(*listwatch.UnknownKindError))}
	n := noNews
	if kind.failure.unreachable() {
		n = l.outage.failed(l, err.Error(), now)
	} else {
		l.answered(ctx) // With a refusal, for example.
	}

	l.mu.Lock()
	if l.err == nil {
		l.since = now
	}
	l.err = e
	if !kind.failure.unreachable() && l.told.isNews(kind, text, now) {
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
		log.Info("Cannot follow the API server", "reason", text, "duration", now.Sub(since))
	case resourceNews:
		log.Info("Cannot follow the resource", "reason", text, "duration", now.Sub(since))
	default:
		log.V(4).Info("Still cannot follow the resource", "reason", text)
	}
}

// answered notes that the server is there. The end of an outage is logged.
func (l *link) answered(ctx context.Context) {
	switch n, begun := l.outage.recovered(l, true); n {
	case serverNews:
		klog.FromContext(ctx).Info("Following the API server again", "duration", time.Since(begun))
	case resourceNews:
		klog.FromContext(ctx).Info("Following the resource again", "duration", time.Since(begun))
	}
}

// unreadable notes an object that could not be decoded. It is logged once for as long as it stays so.
func (l *link) unreadable(ctx context.Context, e *objects.DecodeError) {
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
	log.Info("Object cannot be decoded; the cache keeps its last readable state", "object", e.Key, "resourceVersion", e.Version, "reason", e.Err.Error())
}

// readable notes that what is under key can be decoded, or is gone, as of a version.
func (l *link) readable(key, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.unread[key]; e != nil && !objects.Older(version, e.Version) {
		delete(l.unread, key)
	}
}

// listed notes a complete list and what of it could not be decoded. It does not take back that watching fails.
func (l *link) listed(ctx context.Context, unreadable []*objects.DecodeError) {
	still := make(map[string]bool, len(unreadable))
	for _, e := range unreadable {
		still[e.Key] = true
		l.unreadable(ctx, e)
	}
	l.mu.Lock()
	maps.DeleteFunc(l.unread, func(key string, _ *objects.DecodeError) bool { return !still[key] })
	if l.since.IsZero() || l.err != nil && l.err.Verb == "list" {
		l.recoverLocked()
	}
	l.mu.Unlock()
}

// watching notes that a watch is open. The end of what was logged is logged, too.
func (l *link) watching(ctx context.Context) {
	l.answered(ctx)
	l.mu.Lock()
	if l.err != nil {
		l.recoverLocked()
	}
	begun := l.told.begun
	l.told.begun = time.Time{}
	l.mu.Unlock()
	if !begun.IsZero() {
		klog.FromContext(ctx).Info("Following the resource again", "duration", time.Since(begun))
	}
}

func (l *link) recoverLocked() {
	l.err, l.since = nil, time.Now()
	clear(l.told.kinds)
}

// unreadables returns how many objects cannot be decoded, and the error of the first by key.
func (l *link) unreadables() (n int, first error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unread) == 0 {
		return 0, nil
	}
	return len(l.unread), l.unread[slices.Min(slices.Collect(maps.Keys(l.unread)))]
}

// listFails reports whether the last failure, which still lasts, was that of a list.
func (l *link) listFails() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err != nil && l.err.Verb == "list"
}

// health returns since when which failure lasts, or, with nil, since when there is none.
func (l *link) health() (since time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return l.since, nil
	}
	return l.since, l.err
}

// told is what the log was told of failures.
type told struct {
	// kinds has when each kind of failure was logged last. Invariant: empty when nothing fails.
	kinds map[failureKind]time.Time
	// words and at are the last line.
	words string
	at    time.Time
	// begun is when the first failure was logged that is not over; zero when the log knows of none.
	begun time.Time
}

// failureKind tells failures apart that are worth a line each. The verb does not: without a permission a watch fails, and
// then the list that is tried instead.
type failureKind struct {
	failure failure
	reason  metav1.StatusReason
	// unknown says that the server has no such kind: more than that there is nothing to watch.
	unknown bool
}

// isNews reports whether a failure is worth a line, and notes that it got one.
func (t *told) isNews(kind failureKind, words string, now time.Time) bool {
	if last, before := t.kinds[kind]; before {
		if kind.failure == failRefused || now.Sub(last) < repeatLog {
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
