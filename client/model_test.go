package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// TestReadersModel generates sequences of writes and reads and compares each read with the server. The answer to a
// write comes or is lost, and the server may apply a write with a lost answer at once, late, or not at all.
//
//   - A reconcile that gets an answer gets the server's state, with every own write, or else it gets ErrStale. The
//     exception is a write of one name that was applied late: it may be missing until the watch brings it.
//   - Other reads never return ErrStale, never wait, and never miss a write that was answered.
func TestReadersModel(t *testing.T) {
	var all modelCounts
	for seed := range uint64(60) {
		inWorld(t, client.Options{}, func(w *world) {
			m := &readersModel{
				world: w, rand: rand.New(rand.NewPCG(seed, 1)), server: other(w),
				unshown: map[string]bool{}, lost: map[string]time.Time{}, counts: &all,
			}
			m.run()
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%+v", all)
	if min(all.Seen, all.Stale, all.Outside, all.Late) < 100 {
		t.Errorf("the sequences meet too little: %+v", all)
	}
}

// modelCounts counts the results of the reads of all runs.
type modelCounts struct{ Seen, Stale, Outside, Late int }

// readersModel is one sequence.
type readersModel struct {
	*world
	rand   *rand.Rand
	server *client.Cluster // asks the server, and applies what comes late
	counts *modelCounts
	quick  bool // the watch is not behind
	number int

	lock sync.Mutex
	// unshown are the objects that were changed by a write whose answer was lost, or that came late, until the cache
	// shows the change. The value reports whether a reconcile may miss it as well.
	unshown map[string]bool
	// lost has, for each name, when the answer to a write that does harm late was last lost.
	lost map[string]time.Time
}

func (m *readersModel) run() {
	m.warm(&corev1.ConfigMapList{})
	if m.quick = m.rand.IntN(3) == 0; !m.quick {
		m.set(func() { m.lag = time.Duration(m.rand.Int64N(int64(2 * time.Second))) })
	}
	for range 40 {
		m.write([]string{"a", "b", "c"}[m.rand.IntN(3)])
		for range 1 + m.rand.IntN(3) {
			m.read([]string{"a", "b", "c", ""}[m.rand.IntN(4)], m.rand.IntN(2) == 0)
			time.Sleep(time.Duration(m.rand.Int64N(int64(time.Second))))
		}
		if m.rand.IntN(8) == 0 {
			time.Sleep(70 * time.Second)
		}
	}
	time.Sleep(2 * time.Minute) // Everything that is late has come.
}

// write writes the object of that name, or creates a child, and may lose the answer.
func (m *readersModel) write(name string) {
	m.catchUp()
	m.number++
	label := []string{"app", "web", "v", fmt.Sprint(m.number)}
	obj, verb, harmsLate := configMap(name, label...), m.rand.IntN(6), false
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"v":"%d"}}}`, m.number))
	var send func(ctx context.Context, c *client.Cluster) error
	switch current := m.state()[name]; verb {
	case 0:
		send = func(ctx context.Context, c *client.Cluster) error { return c.Create(ctx, obj.DeepCopy()) }
	case 1:
		name, harmsLate = "child-", true
		obj = configMap("", label...)
		obj.GenerateName = name
		send = func(ctx context.Context, c *client.Cluster) error { return c.Create(ctx, obj.DeepCopy()) }
	case 2:
		obj.ResourceVersion, harmsLate = current.version, current.version == ""
		send = func(ctx context.Context, c *client.Cluster) error { return c.Update(ctx, obj.DeepCopy()) }
	case 3:
		harmsLate = true
		send = func(ctx context.Context, c *client.Cluster) error { return c.Patch(ctx, obj.DeepCopy(), patch) }
	case 4:
		before := configMap(name)
		before.ResourceVersion = current.version
		harmsLate = current.version == ""
		send = func(ctx context.Context, c *client.Cluster) error {
			return c.Patch(ctx, obj.DeepCopy(),
				client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
	case 5:
		harmsLate = true
		send = func(ctx context.Context, c *client.Cluster) error { return c.Delete(ctx, obj.DeepCopy()) }
	}
	outcome := m.rand.IntN(5)
	if outcome > 0 && outcome < 4 && harmsLate {
		m.lock.Lock()
		m.lost[name] = time.Now()
		m.lock.Unlock()
	}
	switch outcome {
	case 1:
		m.lose(true)
	case 2, 3:
		m.lose(false)
	case 4: // Refused.
		m.set(func() {
			m.before = func(r *gate.Request) gate.Verdict {
				if !r.Mutates() {
					return gate.Verdict{}
				}
				return gate.FailWith(apierrors.NewInternalError(errors.New(`failed calling webhook "a.b.c"`)))
			}
		})
	}
	if outcome == 1 {
		m.surprise(name, false)
	}
	_ = send(m.ctx, m.Cluster)
	m.set(func() { m.before, m.after = nil, nil })
	if outcome == 3 {
		m.counts.Late++
		time.AfterFunc(time.Duration(m.rand.Int64N(int64(55*time.Second))), func() {
			m.surprise(name, !harmsLate || verb == 5) // A deletion of what is gone is no longer waited for.
			_ = send(m.outside, m.server)
		})
	}
}

// surprise records a change of the object of that name, or of a child, that no answer reports. inside reports whether a
// reconcile may miss it as well.
func (m *readersModel) surprise(name string, inside bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.unshown[name] = m.unshown[name] || inside
}

// modelState is the part of an object that is compared.
type modelState struct{ version, value string }

// listed reads all objects, by name.
func (m *readersModel) listed(ctx context.Context, c *client.Cluster, opts ...client.ListOption) (map[string]modelState,
	error,
) {
	var list corev1.ConfigMapList
	err := c.List(ctx, &list, append(opts, client.MatchingLabels{"app": "web"})...)
	all := map[string]modelState{}
	for _, item := range list.Items {
		all[item.Name] = modelState{item.ResourceVersion, item.Labels["v"]}
	}
	return all, err
}

// state returns the objects of the server.
func (m *readersModel) state() map[string]modelState {
	all, err := m.listed(m.outside, m.server)
	m.must(err)
	return all
}

// read reads one object, or all if the name is empty.
func (m *readersModel) read(name string, inside bool) {
	ctx := m.outside
	if inside {
		ctx = m.ctx
	}
	before, began := m.state(), time.Now()
	got, err := map[string]modelState{}, error(nil)
	if name == "" {
		got, err = m.listed(ctx, m.Cluster)
	} else {
		var obj corev1.ConfigMap
		if err = m.Get(ctx, keyOf(configMap(name)), &obj); err == nil {
			got[name] = modelState{obj.ResourceVersion, obj.Labels["v"]}
		}
		err = client.IgnoreNotFound(err)
	}
	if took := time.Since(began); took > 0 && !inside {
		m.t.Errorf("read %q outside: waited %v", name, took)
	}
	after := m.state()
	if errors.Is(err, client.ErrStale) && inside {
		m.counts.Stale++
		m.mayBeStale(name)
		return
	}
	if m.must(err); inside {
		m.counts.Seen++
	} else {
		m.counts.Outside++
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	maps.Copy(names, got)
	for one := range names {
		if name != "" && one != name || got[one] == before[one] || got[one] == after[one] {
			continue
		}
		if !m.unknown(one, inside) {
			m.t.Errorf("%s, read %q inside %v: %+v; the server had %+v, and has %+v", one, name, inside, got[one],
				before[one], after[one])
		}
	}
}

// unknown reports whether a reader may not know the state of that name.
func (m *readersModel) unknown(name string, inside bool) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	even, late := m.unshown[strings.SplitAfter(name, "child-")[0]]
	return late && (even || !inside)
}

// catchUp forgets the surprises once the cache shows all that the server has.
func (m *readersModel) catchUp() {
	shown, err := m.listed(m.outside, m.Cluster, client.Lagging)
	m.must(err)
	m.lock.Lock()
	defer m.lock.Unlock()
	if maps.Equal(shown, m.state()) {
		clear(m.unshown)
	}
}

// mayBeStale checks, where the watch is not behind, that a read of that name has a reason not to be answered.
func (m *readersModel) mayBeStale(name string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for lost, at := range m.lost {
		// A cache shows that it has reached the version of a list only by its next event or bookmark.
		if name == lost && time.Since(at) < 61*time.Second || name == "" && time.Since(at) < 2*time.Minute {
			return
		}
	}
	if m.quick {
		m.t.Errorf("read %q: stale without a reason", name)
	}
}
