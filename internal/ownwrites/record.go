package ownwrites

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

	"github.com/flyball-dev/flyball/internal/cachecheck"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// ObjectKey names an object within its resource.
type ObjectKey = types.NamespacedName

// Record has the own writes to one server.
//
// Concurrency: all methods may be called from any goroutine.
type Record struct {
	base url.URL
	peer atomic.Pointer[Peer]
	// awaited: see SetAwaited.
	awaited atomic.Bool
	// begun and ended count write requests. Both only rise.
	begun, ended atomic.Uint64

	mu        sync.Mutex
	resources map[schema.GroupResource]*Resource
	// all are the resources, in the order of their first use. The slice only grows.
	all []*Resource
}

// Caches are the caches of a server.
type Caches interface {
	Checks() cachecheck.Caches
}

// Peer describes the server and the caches of it.
type Peer struct {
	// Caches are the caches of the process, an *informer.Factory. Nil, or a nil pointer, means none.
	Caches Caches
	// Server is asked for what an answer did not say.
	Server rest.Interface
	// RequestTimeout is how long the server may work on a request whose answer was lost.
	RequestTimeout time.Duration
	// AskTimeout bounds each request of [Record.Behind]; zero means no bound. Behind does not ask again when a server
	// took longer.
	AskTimeout time.Duration
	// Away reports whether the server cannot be reached at the moment. If so, Moving and Behind ignore it. Nil: never.
	Away func() bool
}

// defaultRequestTimeout is the kube-apiserver's --request-timeout.
const defaultRequestTimeout = time.Minute

// New returns a record of the writes to the server that config leads to. It ignores requests of clients made of the
// same config that go elsewhere: to another host, or to a path that is not below the config's.
//
// Errors: a config with an invalid host.
func New(config *rest.Config) (*Record, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the address of the server: %w", err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	r := &Record{base: *base, resources: map[schema.GroupResource]*Resource{}}
	r.peer.Store(&Peer{RequestTimeout: defaultRequestTimeout})
	return r, nil
}

// Find returns the record that t, or a transport that it wraps, feeds; nil if there is none.
func Find(t http.RoundTripper) *Record {
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

// Connect sets the server and the caches. It reports false, and changes nothing, if the record is connected to other
// caches already: the two would number the server's history differently.
func (r *Record) Connect(p Peer) bool {
	if p.RequestTimeout <= 0 {
		p.RequestTimeout = defaultRequestTimeout
	}
	if misuse.IsNil(p.Caches) {
		p.Caches = nil
	}
	for {
		before := r.peer.Load()
		if before.Caches != nil && before.Caches != p.Caches {
			return false
		}
		p.AskTimeout, p.Away = before.AskTimeout, before.Away
		if r.peer.CompareAndSwap(before, &p) {
			return true
		}
	}
}

// Bound bounds how long [Record.Behind] waits for a server that may not answer.
func (r *Record) Bound(askTimeout time.Duration, away func() bool) {
	p := *r.peer.Load()
	p.AskTimeout, p.Away = askTimeout, away
	r.peer.Store(&p)
}

// caches returns the caches of the process; none before Connect.
func (r *Record) caches() cachecheck.Caches {
	if caches := r.peer.Load().Caches; caches != nil {
		return caches.Checks()
	}
	return cachecheck.Caches{}
}

// history returns the number of the server's history. Without caches there is one.
func (r *Record) history() int64 { return r.caches().History }

// Of returns the writes of one resource. Caches of all representations and of all versions of an API share them.
func (r *Record) Of(resource schema.GroupResource) *Resource {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.resources[resource]
	if l == nil {
		l = newResource(r, resource)
		r.resources[resource] = l
		r.all = append(r.all, l)
	}
	return l
}

// All returns all resources that were written or read, in the order of their first use. The caller must not change the
// slice.
func (r *Record) All() []*Resource {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}
