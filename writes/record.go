package writes

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/writes/internal/caches"
)

// Record has the own writes to one server.
//
// Concurrency: all methods may be called from any goroutine.
type Record struct {
	base url.URL
	peer atomic.Pointer[peer]
	// awaited is set while a manager runs until it is idle; see [Awaited].
	awaited        atomic.Bool
	contradictions contradictions
	// begun and ended count write requests. Both only rise.
	begun, ended atomic.Uint64

	mu        sync.Mutex
	resources map[schema.GroupResource]*Resource
	// all are the resources, in the order of their first use. The slice only grows.
	all []*Resource
}

// peer is the server of a record. Connect and AskWithin replace it; it is never changed.
type peer struct {
	// caches are those of the process.
	caches *caches.Set
	// server is asked about writes whose answers do not show their effect; nil if it cannot be asked.
	server rest.Interface
	// requestTimeout is how long the server may work on a request whose answer was lost.
	requestTimeout time.Duration
	// askTimeout and unreachable are the arguments of AskWithin.
	askTimeout  time.Duration
	unreachable func() bool
}

// defaultRequestTimeout is the kube-apiserver's --request-timeout.
const defaultRequestTimeout = time.Minute

// New returns a record of the writes to the server that config leads to. The record ignores requests to another host,
// and to a path that is not below that of config.
//
// Errors: a config with an invalid host.
func New(config *rest.Config) (*Record, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the address of the server: %w", err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	r := &Record{base: *base, resources: map[schema.GroupResource]*Resource{}}
	r.contradictions.observed, r.contradictions.relisted = map[contradiction]answers{}, map[informer.Cache]time.Time{}
	r.peer.Store(&peer{
		caches: caches.Of(nil), requestTimeout: defaultRequestTimeout, unreachable: func() bool { return false },
	})
	return r, nil
}

// Of returns the record to which t, or a transport that t wraps, reports; nil if there is none.
func Of(t http.RoundTripper) *Record {
	for t != nil {
		if own, ok := t.(*transport); ok {
			return own.record
		}
		w, ok := t.(utilnet.RoundTripperWrapper)
		if !ok {
			return nil
		}
		t = w.WrappedRoundTripper()
	}
	return nil
}

// Connect sets the caches of the process, the server to ask about writes whose answers do not show their effect, and
// how long that server may work on a request whose answer was lost. A nil server and a zero timeout leave what was set
// before. If the record is connected to the caches of another factory, Connect changes nothing and returns false,
// because two factories number the histories of the server differently.
func (r *Record) Connect(f *informer.Factory, server rest.Interface, requestTimeout time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := *r.peer.Load()
	if p.caches.None() {
		p.caches = caches.Of(f)
	} else if !p.caches.From(f) {
		return false
	}
	if server != nil {
		p.server = server
	}
	if requestTimeout > 0 {
		p.requestTimeout = requestTimeout
	}
	r.peer.Store(&p)
	return true
}

// AskWithin bounds how long [Awaited.Behind] waits for each answer of the server. If an answer takes longer, Behind
// does not ask about that write again. While the server is unreachable, Moving and Behind ignore its writes.
func (r *Record) AskWithin(timeout time.Duration, unreachable func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := *r.peer.Load()
	p.askTimeout, p.unreachable = timeout, unreachable
	r.peer.Store(&p)
}

func (r *Record) caches() *caches.Set { return r.peer.Load().caches }

// Resource returns the writes of one resource. Caches of all representations and of all versions of an API share them.
func (r *Record) Resource(name schema.GroupResource) *Resource {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.resources[name]
	if l == nil {
		l = &Resource{Name: name, record: r, entries: map[types.NamespacedName]*Entry{}, inDoubt: map[*Write]struct{}{}}
		r.resources[name] = l
		r.all = append(r.all, l)
	}
	return l
}

// allResources returns the resources that were written or read, in the order of their first use. The caller must not
// change the slice.
func (r *Record) allResources() []*Resource {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// Sizes returns the number of own writes that some cache has not reached, the number of writes in doubt, and the number
// of states that the caches still have to show or to pass.
func (r *Record) Sizes() (unseen, inDoubt, expected int) {
	for _, l := range r.allResources() {
		unseenOf, inDoubtOf := l.sizes()
		unseen, inDoubt = unseen+unseenOf, inDoubt+inDoubtOf
	}
	r.prune()
	return unseen, inDoubt, r.caches().Expected()
}

// prune forgets the caches that the factory has dropped, so that they can be freed.
func (r *Record) prune() {
	r.caches().Prune()
	r.contradictions.prune(r.caches().All())
}
