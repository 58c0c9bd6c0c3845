package connection

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// Server is what all informers of one server know together of the server, and of its history. The history ends when
// a server is restored from a backup, or another server, an empty one perhaps, takes its place. Resource versions
// of the next history mean nothing to a cache of the last one, and the next may have passed them before an informer
// is connected again. So the first informer that notices tells all others, and each of them lists anew.
//
// Two things tell that a history ended: a list that may not be old (the newest, as etcd has it) is at a version
// below one that was seen; and the server is another one: see identify. The first can be wrong about the others
// where an API server serves several storages, as an aggregated API has one of its own: see uncertain.
//
// Concurrency: all methods may be called from any goroutine.
type Server struct {
	// identify asks the server who it is. It is called once for each outage. nil: nobody knows how to ask.
	identify func(ctx context.Context) (string, error)
	// asking has an element while somebody asks. Sent to and received from by verify; capacity 1. It is a mutex
	// that a context ends.
	asking chan struct{}

	outage outage

	// number counts the histories that ended. It is written under mu.
	number atomic.Int64

	mu sync.Mutex
	// identity is the server's last answer, "" if there was none.
	identity string
	// losses counts connections that broke; answered is their number when the last question began that was
	// answered, negative before the first.
	losses, answered int64
	// uncertain has the API groups that reported an end that no other group has confirmed, and when.
	uncertain map[string]time.Time
	members   map[*Interrupter]struct{}
}

// trustAgain is after how long an API group whose last report nobody confirmed is believed again.
const trustAgain = time.Hour

// identifyTimeout is how long the server may take to say who it is.
const identifyTimeout = 5 * time.Second

// NewServer returns a Server whose identity is told by identify; nil: nobody knows how to ask.
func NewServer(identify func(ctx context.Context) (string, error)) *Server {
	return &Server{
		identify: identify, asking: make(chan struct{}, 1), answered: -1,
		uncertain: map[string]time.Time{}, members: map[*Interrupter]struct{}{},
	}
}

// Current is the number of the history that the server is in, as far as is known.
func (h *Server) Current() int64 { return h.number.Load() }

// Ended notes that an informer of the resource was given a newest list of a version below its position, and reports
// whether all informers are to list anew. They are not when the last such report of the resource's API group, an
// hour ago or less, was confirmed by no other group: the group has a storage of its own, and perhaps several that
// do not agree.
func (h *Server) Ended(ctx context.Context, resource, position, version string) bool {
	group := groupOf(resource)
	h.mu.Lock()
	if at, before := h.uncertain[group]; before && time.Since(at) < trustAgain {
		h.mu.Unlock()
		return false
	}
	h.uncertain = map[string]time.Time{group: time.Now()}
	members := h.nextLocked()
	h.mu.Unlock()
	klog.FromContext(ctx).Info("Server's resource versions went back; relisting all caches", "position", position,
		"resourceVersion", version)
	interruptAll(members)
	return true
}

// Confirm notes that an informer that was told of an end saw it, too.
func (h *Server) Confirm(resource string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for group := range h.uncertain {
		if group != groupOf(resource) {
			delete(h.uncertain, group)
		}
	}
}

// groupOf returns the API group of a resource as informer.Health names it.
func groupOf(resource string) string {
	_, group, _ := strings.Cut(resource, ".")
	return group
}

// Lost notes that a connection broke: what answers next may be another server.
func (h *Server) Lost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.losses++
}

// Verify asks the server who it is, unless it has said so since the last connection broke, and notes an end when it
// is another one: so the first informer that is connected again learns for all whether the same server is back,
// also when the new one is past all positions. A server that does not say is taken for the same.
func (h *Server) Verify(ctx context.Context) {
	if h.identify == nil {
		return
	}
	select {
	case h.asking <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-h.asking }()
	h.mu.Lock()
	losses, known := h.losses, h.answered == h.losses
	h.mu.Unlock()
	if known {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	identity, err := h.identify(bounded)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Failed to identify the server", "reason", err.Error())
		if !Refuses(err) {
			return // The next one asks: the server may be away again.
		}
	}
	last, members := h.identified(identity, losses)
	if members != nil {
		klog.FromContext(ctx).Info("Server was replaced by another; relisting all caches",
			"identity", identity, "lastIdentity", last)
		interruptAll(members)
	}
}

// identified notes an answer, "" if the server refused one, to a question that began after so many losses. It
// returns the one before, and who is to be told if the history ended.
func (h *Server) identified(identity string, losses int64) (last string, members []*Interrupter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered = losses
	last = h.identity
	if identity == "" || identity == last {
		return last, nil
	}
	h.identity = identity
	if last == "" || last == absent {
		return last, nil // Known now: a server makes its namespaces a little after it begins to answer.
	}
	clear(h.uncertain)
	return last, h.nextLocked()
}

// nextLocked begins the next history and returns who is to be told.
func (h *Server) nextLocked() []*Interrupter {
	h.number.Add(1)
	members := make([]*Interrupter, 0, len(h.members))
	for m := range h.members {
		members = append(members, m)
	}
	return members
}

func interruptAll(members []*Interrupter) {
	for _, m := range members {
		m.Interrupt()
	}
}

// join has m interrupted when a history ends. leave ends that.
func (h *Server) join(m *Interrupter) (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.members[m] = struct{}{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.members, m)
	}
}

// Interrupter ends what a reflector is doing, because its cache is not to be believed.
type Interrupter struct {
	// Woken has an element after an interruption that the reflector has not taken. Sent to by interrupt, never
	// closed; capacity 1.
	Woken chan struct{}

	mu sync.Mutex
	// giveUp ends the watch session under way; nil when there is none.
	giveUp context.CancelCauseFunc
}

func newInterrupter() *Interrupter { return &Interrupter{Woken: make(chan struct{}, 1)} }

// Interrupt makes the reflector list anew.
func (i *Interrupter) Interrupt() {
	select {
	case i.Woken <- struct{}{}:
	default:
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.giveUp != nil {
		i.giveUp(ErrHistory)
	}
}

// During has an interruption call giveUp, until the returned function is called. One that has not been taken calls
// it at once.
func (i *Interrupter) During(giveUp context.CancelCauseFunc) (over func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.giveUp = giveUp
	if len(i.Woken) > 0 {
		giveUp(ErrHistory)
	}
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.giveUp = nil
	}
}

// Take reports whether there was an interruption since it was last asked.
func (i *Interrupter) Take() bool {
	select {
	case <-i.Woken:
		return true
	default:
		return false
	}
}
