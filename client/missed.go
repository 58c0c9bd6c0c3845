package client

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
)

// Missed names an object that this process wrote, in a state that a cache never showed: others changed or deleted it
// again in a gap of the watch. No event tells of that state, nor of its end.
type Missed struct {
	Resource schema.GroupResource
	Key      ObjectKey
}

// Waker has something run again that acted on an own write. Wakers are compared by ==: what is woken for the same thing
// is the same.
type Waker interface {
	// Wake is called by the goroutine that applies changes to a cache. It must not block.
	Wake(Missed)
}

type wakerKey struct{}

// WithWaker makes w the one that is woken because of what is written and read with the returned context: when a cache
// turns out never to show an own write that was answered, or laid over a read. Package reconcile does this for every
// reconcile, and runs its key again.
//
// What is read without a waker, outside of any reconcile, nobody can be told of.
func WithWaker(ctx context.Context, w Waker) context.Context {
	return context.WithValue(ctx, wakerKey{}, w)
}

func wakerFrom(ctx context.Context) Waker {
	w, _ := ctx.Value(wakerKey{}).(Waker)
	return w
}

// Expect wakes the waker of ctx if the cache of inf comes past the state obj, which an answer told, and never shows it.
// It is for reconcilers that read by informers and write by a clientset; a [Cluster] does this itself.
func Expect[T Object](ctx context.Context, inf informer.Informer[T], resource schema.GroupResource, obj metav1.Object) {
	w := wakerFrom(ctx)
	if w == nil {
		return
	}
	informer.Expect(inf, &informer.Expected{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
		Missed: func() { w.Wake(Missed{resource, ObjectKeyFromObject(obj)}) },
	})
}

// knowers are those who know a state that some cache may never show.
type knowers struct {
	mu sync.Mutex
	// wakers are woken then. Invariant: empty once missed.
	wakers map[Waker]struct{}
	missed bool
}

// add lets w, which may be nil, know the state. It returns false when a cache has missed it already: then w must not
// act on it.
func (k *knowers) add(w Waker) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.missed || w == nil {
		return !k.missed
	}
	if k.wakers == nil {
		k.wakers = map[Waker]struct{}{}
	}
	k.wakers[w] = struct{}{}
	return true
}

// known lets w know all entries. It returns false when one of them was missed: then what was read has to be read again.
func known(shown []*entry, w Waker) bool {
	for _, e := range shown {
		if !e.knowers.add(w) {
			return false
		}
	}
	return true
}

// remove notes that w knows a later state. It reports whether nobody is left.
func (k *knowers) remove(w Waker) (empty bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.wakers, w)
	return len(k.wakers) == 0
}

func (k *knowers) hasMissed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.missed
}

// miss wakes all.
func (k *knowers) miss(m Missed) {
	k.mu.Lock()
	wakers := k.wakers
	k.wakers, k.missed = nil, true
	k.mu.Unlock()
	for w := range wakers {
		w.Wake(m)
	}
}

// expect waits for the caches to show e, the effect of w.
func (l *ledger) expect(w *write, e *entry) {
	if l.informers == nil {
		return
	}
	e.expected = informer.Expected{
		Namespace: e.key.Namespace, Name: e.key.Name, UID: e.uid, ResourceVersion: e.version, Selected: e.selectedBy,
		Missed: func() { e.knowers.miss(Missed{l.resource, e.key}) },
	}
	l.informers.Expect(w.kind, &e.expected)
}

// outdate notes that who made w, which superseded e, knows a later state than e.
func (l *ledger) outdate(w *write, e *entry) {
	if empty := e.knowers.remove(w.waker); empty && l.informers != nil {
		l.informers.Unexpect(w.kind, &e.expected)
	}
}

// selectedBy reports whether selectors select the state, whatever it is read as.
func (e *entry) selectedBy(byLabels labels.Selector, byFields fields.Selector) bool {
	var content struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if decode(e.raw, &content) != nil || !byLabels.Matches(labels.Set(content.Metadata.Labels)) {
		return false
	}
	var all map[string]any
	return byFields.Empty() || decode(e.raw, &all) == nil && selects(byFields, all)
}
