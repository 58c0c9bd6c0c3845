package connection

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// Server is what all informers of one server share: what they know about its identity and its history. The history ends
// when the server is restored from a backup, or replaced by another server, perhaps an empty one. Resource versions of
// the next history mean nothing to a cache of the last one, and the next history may have passed them before an
// informer reconnects. So the first informer that notices interrupts all others, and each of them lists anew.
//
// A history has ended if the newest list (the state in etcd) has an earlier version than one that was seen, or if the
// server has another identity; see identify. The first sign can mislead where an API server serves several storages:
// an aggregated API has a storage of its own. See uncertain.
//
// Concurrency: all methods may be called from any goroutine.
type Server struct {
	// identify asks the server for its identity, once per outage. nil if there is no way to ask.
	identify func(ctx context.Context) (string, error)
	// asking is a mutex that gives up when a context ends: Verify sends to lock and receives to unlock. Capacity 1.
	asking chan struct{}

	outage outage

	// number counts the histories that ended. It is written under mu.
	number atomic.Int64

	mu sync.Mutex
	// identity is the server's last answer; "" before the first.
	identity string
	// losses counts connections that broke. verified is the value of losses at the time when the last question that the
	// server answered was sent; negative before the first answer.
	losses, verified int64
	// uncertain has the API groups that reported an end which no other group has confirmed, and when they did.
	uncertain map[string]time.Time
	// reflectors are interrupted when the history ends.
	reflectors map[*Interrupter]struct{}
}

// trustAgain is how long the reports of an API group are ignored after one that no other group confirmed.
const trustAgain = time.Hour

// identifyTimeout is how long the server may take to return its identity.
const identifyTimeout = 5 * time.Second

// NewServer returns a Server that calls identify for its identity. identify may be nil.
func NewServer(identify func(ctx context.Context) (string, error)) *Server {
	return &Server{
		identify: identify, asking: make(chan struct{}, 1), verified: -1,
		uncertain: map[string]time.Time{}, reflectors: map[*Interrupter]struct{}{},
	}
}

// Current returns the number of the server's current history.
func (h *Server) Current() int64 { return h.number.Load() }

// Ended is called by an informer of the resource that received a newest list with a version below its position. Ended
// interrupts all informers and returns true. It does nothing and returns false if the resource's API group made the
// same report within the last hour and no other group confirmed it: then the group has a storage of its own, perhaps
// several that disagree.
func (h *Server) Ended(ctx context.Context, resource, position, version string) bool {
	group := groupOf(resource)
	h.mu.Lock()
	if at, before := h.uncertain[group]; before && time.Since(at) < trustAgain {
		h.mu.Unlock()
		return false
	}
	h.uncertain[group] = time.Now()
	reflectors := h.nextLocked()
	h.mu.Unlock()
	klog.FromContext(ctx).Info("Server's resource versions went back; relisting all caches", "position", position,
		"resourceVersion", version)
	interruptAll(reflectors)
	return true
}

// Confirm is called by an interrupted informer of the resource that saw the end of the history, too.
func (h *Server) Confirm(resource string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.uncertain, func(group string, _ time.Time) bool { return group != groupOf(resource) })
}

// groupOf returns the API group of a resource such as "deployments.apps".
func groupOf(resource string) string {
	_, group, _ := strings.Cut(resource, ".")
	return group
}

// Lost records that a connection broke. Another server may answer next, so Verify has to ask again.
func (h *Server) Lost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.losses++
}

// Verify asks the server for its identity, unless it has answered since the last connection broke. If another server
// has taken its place, Verify interrupts all informers. So the first informer that reconnects finds this out for all of
// them, even if the new server is ahead of every position. A server that refuses to answer counts as the same one.
//
// Errors: those of the request.
func (h *Server) Verify(ctx context.Context) error {
	if h.identify == nil {
		return nil
	}
	select {
	case h.asking <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.asking }()
	h.mu.Lock()
	losses, known := h.losses, h.verified == h.losses
	h.mu.Unlock()
	if known {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	identity, err := h.identify(bounded)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Failed to identify the server", "reason", err.Error())
		if !Forbids(err) || apierrors.IsUnauthorized(err) {
			return err // The next informer asks again: the server may be away once more, or the credentials renewed.
		}
	}
	last, reflectors := h.identified(identity, losses)
	if reflectors != nil {
		klog.FromContext(ctx).Info("Server was replaced by another; relisting all caches",
			"identity", identity, "lastIdentity", last)
		interruptAll(reflectors)
	}
	return err
}

// identified records an answer, or "" if the server refused to give one. losses is the count when the question began.
// identified returns the last identity, and the reflectors to interrupt if the history has ended.
func (h *Server) identified(identity string, losses int64) (last string, reflectors []*Interrupter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.verified = losses
	last = h.identity
	if identity == "" || identity == last {
		return last, nil
	}
	h.identity = identity
	if last == "" || last == absent {
		return last, nil // It is the first identity: a new server answers before it has created its namespaces.
	}
	clear(h.uncertain)
	return last, h.nextLocked()
}

// nextLocked begins the next history and returns the reflectors to interrupt.
func (h *Server) nextLocked() []*Interrupter {
	h.number.Add(1)
	return slices.Collect(maps.Keys(h.reflectors))
}

func interruptAll(reflectors []*Interrupter) {
	for _, i := range reflectors {
		i.Interrupt()
	}
}

// join registers a reflector to be interrupted when a history ends, until leave is called.
func (h *Server) join(i *Interrupter) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reflectors[i] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.reflectors, i)
	}
}

// Interrupter makes a reflector drop what it is doing and list anew.
type Interrupter struct {
	// Interrupted has an element after an interruption that the reflector has not taken yet. Sent to by Interrupt,
	// never closed; capacity 1.
	Interrupted chan struct{}

	mu sync.Mutex
	// abort ends the current watch session; nil if there is none.
	abort context.CancelCauseFunc
}

func newInterrupter() *Interrupter { return &Interrupter{Interrupted: make(chan struct{}, 1)} }

// Interrupt makes the reflector list anew.
func (i *Interrupter) Interrupt() {
	select {
	case i.Interrupted <- struct{}{}:
	default:
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.abort != nil {
		i.abort(ErrHistory)
	}
}

// OnInterrupt registers abort, to be called by an interruption, until the returned function is called. If an
// interruption has not been taken yet, abort is called at once.
func (i *Interrupter) OnInterrupt(abort context.CancelCauseFunc) (unregister func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.abort = abort
	if len(i.Interrupted) > 0 {
		abort(ErrHistory)
	}
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.abort = nil
	}
}

// TakeInterrupt reports whether there was an interruption since the last call.
func (i *Interrupter) TakeInterrupt() bool {
	select {
	case <-i.Interrupted:
		return true
	default:
		return false
	}
}
