package loop

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Namespace is where the ConfigMaps of all works are.
const Namespace = "default"

// Work is what one process of a system has to do.
type Work struct {
	// Kind is one of Kinds.
	Kind string
	// Objects is the number of ConfigMaps at the start, or of keys, or of those that come and go.
	Objects, Workers int
	// Turn distinguishes the runs on one server: a patch writes it.
	Turn int
	// Seconds is how long the steady state is measured.
	Seconds int
}

// Kinds are the kinds of work.
const (
	// Feed adds every key once; the reconciler does nothing.
	Feed = "feed"
	// Patch patches every object once.
	Patch = "patch"
	// Start reconciles every object once, and writes nothing.
	Start = "start"
	// Storm follows objects that another process creates, updates and deletes.
	Storm = "storm"
	// Steady reconciles every object once a second because of resyncs.
	Steady = "steady"
)

// Marker is the name of one more object. It tells a process when a storm begins and ends.
const Marker = "marker"

// The data of an object.
const (
	turnKey = "turn" // The turn that patched it last.
	AtKey   = "at"   // When it was written, in nanoseconds of Unix time.
	EndKey  = "end"  // Set on the marker after a storm.
)

// Object returns the n-th ConfigMap.
func Object(n int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: fmt.Sprintf("object-%06d", n),
			Labels:      map[string]string{"app": "web", "tier": "frontend"},
			Annotations: map[string]string{"example.com/owner": "team-" + strconv.Itoa(n%20)},
		},
		Data: map[string]string{"color": "blue", "size": strconv.Itoa(n), "text": "a few words of content"},
	}
}

// task is a work as its reconciler sees it.
type task struct {
	work Work
	// reconciles counts the calls; first is closed by the first of them, done when all is done.
	reconciles atomic.Int64
	first      func()
	done       func()
	// begin is called when the marker of a storm has been seen.
	begin func()

	mu sync.Mutex
	// seen are the keys that need no more work.
	seen map[types.NamespacedName]bool
	// ages are the times from a write to its first reconcile, each state counted once.
	ages   []time.Duration
	latest map[types.NamespacedName]int64
	ended  bool
}

func newTask(w Work, first, begin, done func()) *task {
	return &task{
		work: w, first: sync.OnceFunc(first), begin: sync.OnceFunc(begin), done: sync.OnceFunc(done),
		seen: map[types.NamespacedName]bool{}, latest: map[types.NamespacedName]int64{},
	}
}

// reconcile is a [Reconciler].
func (t *task) reconcile(ctx context.Context, c Client, name types.NamespacedName) error {
	if t.reconciles.Add(1) == 1 {
		t.first()
	}
	switch t.work.Kind {
	case Feed:
		if t.reconciles.Load() == int64(t.work.Objects) {
			t.done()
		}
		return nil
	case Patch:
		return t.patch(ctx, c, name)
	}
	var obj corev1.ConfigMap
	err := c.Get(ctx, name, &obj)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case t.work.Kind == Storm:
		t.follow(name, &obj, err == nil)
	default:
		t.see(name)
	}
	return nil
}

// patch writes the turn into an object that does not have it.
func (t *task) patch(ctx context.Context, c Client, name types.NamespacedName) error {
	var obj corev1.ConfigMap
	if err := c.Get(ctx, name, &obj); err != nil {
		return err
	}
	turn := strconv.Itoa(t.work.Turn)
	if obj.Data[turnKey] == turn {
		t.see(name)
		return nil
	}
	changed := obj.DeepCopy()
	changed.Data = maps.Clone(changed.Data)
	changed.Data[turnKey] = turn
	return c.Patch(ctx, changed, &obj)
}

// see notes that nothing is left to do for an object.
func (t *task) see(name types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[name] = true
	if len(t.seen) == t.work.Objects {
		t.done()
	}
}

// follow notes how old the state of an object is that a reconcile reads.
func (t *task) follow(name types.NamespacedName, obj *corev1.ConfigMap, exists bool) {
	if name.Name == Marker {
		t.begin()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if name.Name == Marker {
		t.ended = obj.Data[EndKey] != ""
	} else if !exists {
		t.seen[name] = true
	} else if at, err := strconv.ParseInt(obj.Data[AtKey], 10, 64); err == nil && at != t.latest[name] {
		t.latest[name] = at
		t.ages = append(t.ages, time.Since(time.Unix(0, at)))
	}
	if t.ended && len(t.seen) >= t.work.Objects {
		t.done()
	}
}
