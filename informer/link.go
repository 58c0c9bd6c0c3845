package informer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// repeatLog is how often a failure that goes on is logged again.
const repeatLog = 5 * time.Minute

// link is how a reflector stands with its server: what [Health] and [Stats] tell, and what is worth a line in the log.
type link struct {
	counters
	resource, namespace string
	onError             func(context.Context, error) // See ReflectorOptions.

	mu sync.Mutex
	// err is the last failure since both a list and a watch succeeded; nil when all is well.
	err *RequestError
	// since is when the run of failures began, or, when err is nil, when it ended; zero before the first attempt ended.
	since time.Time
	// logged and loggedAt are the last failure written to the log.
	logged   string
	loggedAt time.Time
	// unread has, by key, the objects that are there in a state that could not be decoded. Written by the reflector only.
	unread map[string]*DecodeError
}

// failed notes a failure. The first of its kind is logged, repetitions only now and then: an outage of an hour is a few
// lines, not thousands.
func (l *link) failed(ctx context.Context, verb string, err error) {
	l.errors.Add(1)
	e := &RequestError{Verb: verb, Resource: l.resource, Namespace: l.namespace, Err: err}
	text, now := e.Error(), time.Now()

	l.mu.Lock()
	if l.err == nil {
		l.since = now
	}
	l.err = e
	fresh := text != l.logged || now.Sub(l.loggedAt) >= repeatLog
	if fresh {
		l.logged, l.loggedAt = text, now
	}
	since := l.since
	l.mu.Unlock()

	if l.onError != nil {
		l.onError(ctx, e)
	}
	log := klog.FromContext(ctx)
	if fresh {
		log.Info("Cannot follow the resource", "reason", text, "duration", now.Sub(since))
	} else {
		log.V(4).Info("Still cannot follow the resource", "reason", text)
	}
}

// unreadable notes an object that could not be decoded. It is logged once for as long as it stays so.
func (l *link) unreadable(ctx context.Context, e *DecodeError) {
	l.mu.Lock()
	_, known := l.unread[e.Key]
	if l.unread == nil {
		l.unread = map[string]*DecodeError{}
	}
	l.unread[e.Key] = e
	l.mu.Unlock()
	log := klog.FromContext(ctx)
	if known {
		log = log.V(4)
	}
	log.Info("Object cannot be decoded; the cache keeps its last readable state", "object", e.Key, "resourceVersion", e.Version, "reason", e.Err.Error())
}

// readable notes that what is under key can be decoded, or is gone.
func (l *link) readable(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unread, key)
}

// listed notes a complete list and what of it could not be decoded. It does not take back that watching fails.
func (l *link) listed(ctx context.Context, unreadable []*DecodeError) {
	still := make(map[string]bool, len(unreadable))
	for _, e := range unreadable {
		still[e.Key] = true
		l.unreadable(ctx, e)
	}
	l.mu.Lock()
	maps.DeleteFunc(l.unread, func(key string, _ *DecodeError) bool { return !still[key] })
	recovered := l.err != nil && l.err.Verb == "list"
	if recovered || l.since.IsZero() {
		l.recoverLocked()
	}
	l.mu.Unlock()
	if recovered {
		klog.FromContext(ctx).Info("Listing the resource succeeds again")
	}
}

// watching notes that a watch is open.
func (l *link) watching(ctx context.Context) {
	l.mu.Lock()
	recovered := l.err != nil
	var lasted time.Duration
	if recovered {
		lasted = time.Since(l.since)
		l.recoverLocked()
	}
	l.mu.Unlock()
	if recovered {
		klog.FromContext(ctx).V(1).Info("Following the resource again", "duration", lasted)
	}
}

func (l *link) recoverLocked() {
	l.err, l.since = nil, time.Now()
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

// listFails says whether the last failure, which still lasts, was that of a list.
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
