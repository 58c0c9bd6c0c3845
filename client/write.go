package client

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// write is a request that changes something, from before it is sent until its effect is known.
type write struct {
	// key is the object's; its name is empty for a generated name, and when all of a namespace are meant.
	key ObjectKey
	// place is the collection that the object is in.
	place place
	owner any
	// kind is the object's, which a subresource may answer with another one than, and waker who made the write.
	kind  schema.GroupKind
	waker Waker
	// sent is what the object is to become; nil if that is not known.
	sent Object
	// deletes says that the object can only vanish, not change.
	deletes bool
	// all says that it concerns every object of the namespace.
	all bool
	// known are the states in which this process has seen the object that is to be deleted.
	known []identity
	// done is closed when the request is over. Nothing is sent.
	done chan struct{}

	mu sync.Mutex
	// outcome is guarded by mu.
	outcome outcome
}

// outcome is what is known of a write whose effect the answer did not tell.
type outcome struct {
	// vague says that it is not under way any more.
	vague bool
	// lost is why nobody knows what came of it; nil while it is under way, and when it was applied in a way not told.
	lost error
	// after is when a list must begin to be sure to show its effect.
	after time.Time
	// until is the version of such a list, in the server's history of that number; "" before.
	until   string
	history int64
}

// identity is one state of one object.
type identity struct {
	uid     types.UID
	version string
}

// newWrite returns a write that is not sent yet.
func newWrite(ctx context.Context, p place, kind schema.GroupVersionKind, owner any) *write {
	key := ObjectKey{Namespace: p.namespace, Name: p.name}
	return &write{key: key, place: p, owner: owner, kind: kind.GroupKind(), waker: wakerFrom(ctx), done: make(chan struct{})}
}

// settled says whether each of the caches has reached a state in which the write's effect shows.
func (w *write) settled(caches []*cache) bool {
	o := w.state()
	return o.until != "" && !slices.ContainsFunc(caches, func(c *cache) bool {
		return c.follows(w.key.Namespace) && c.store.history(w.key.Namespace) <= o.history && !reached(c.store.watermark(w.key.Namespace), o.until)
	})
}

// blur notes that the request is over and its effect not known: what a list shows that begins at after.
func (w *write) blur(lost error, after time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcome = outcome{vague: true, lost: lost, after: after}
	close(w.done)
}

// state returns what is known about the effect.
func (w *write) state() outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outcome
}

// shownBy notes the version of a list that began at start, in that history of the server, if it shows the effect.
func (w *write) shownBy(version string, history int64, start time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := &w.outcome; o.vague && o.until == "" && !o.after.After(start) {
		o.until, o.history = version, history
	}
}

// concerns says whether a read of c has to wait for w.
func (w *write) concerns(ctx context.Context, c *cache, q *query, l *ledger) bool {
	if !c.follows(w.key.Namespace) || (q.key.Namespace != "" && w.key.Namespace != "" && q.key.Namespace != w.key.Namespace) {
		return false
	}
	if !w.state().vague && (w.owner == nil || w.owner != OwnerFrom(ctx)) {
		return false // Another's write at the same time: the read may be before it as well as after it.
	}
	if w.all {
		return true
	}
	if !q.lists() {
		return w.key == q.key
	}
	before, known := w.before(c, l)
	switch {
	case known && before != nil && c.matches(q, before):
		return true
	case w.deletes:
		return false
	case w.sent == nil:
		return true
	}
	sent, err := c.convert(w.sent)
	return err != nil || c.matches(q, sent)
}

// before returns the object as it is in the cache or the books.
func (w *write) before(c *cache, l *ledger) (obj Object, known bool) {
	if w.key.Name == "" {
		return nil, false
	}
	if e := l.entryOf(w.key); e != nil && !e.gone && e.exactFor(c) {
		if obj, err := e.view(c); err == nil {
			return obj, true
		}
	}
	return c.store.get(w.key)
}

// mayHaveTakenEffect says whether a request that failed with err may have been applied all the same, or still be.
func mayHaveTakenEffect(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		if status.Status().Code < 500 {
			return false
		}
		// An admission webhook that failed is asked before anything is stored.
		return !strings.Contains(status.Status().Message, "failed calling webhook") || status.Status().Reason != metav1.StatusReasonInternalError
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	return !utilnet.IsConnectionRefused(err)
}
