package localapi_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/flyball-dev/flyball/localapi"
)

// operation is what a client asked of one object; outcome is what it was answered.
type (
	operation struct {
		verb, key string
		value     string // to write
		version   int64  // an update's or a delete's precondition; 0 is none
	}
	outcome struct {
		failed  string // the reason of the error; "" is success
		value   string
		version int64

		// Of a write: the version of the write before it, and whether the object is not written again before it is
		// deleted.
		before int64
		final  bool
	}
)

// state is an object as the model has it. last is the version of the last write that told it, also of an object that
// is gone.
type state struct {
	exists bool
	value  string
	last   int64
	final  bool // of the last write
}

// linearizable checks a history. As versions rise, they tell the order of the writes, and so where the deletes stand:
// told so, the search has nothing to try but where reads and refused writes belong.
func linearizable(history []porcupine.Operation) bool {
	for _, ops := range byKey(history) {
		var writes []*porcupine.Operation
		for i := range ops {
			if verb := ops[i].Input.(operation).verb; ops[i].Output.(outcome).failed == "" &&
				(verb == "create" || verb == "update") {
				writes = append(writes, &ops[i])
			}
		}
		slices.SortFunc(writes, func(a, b *porcupine.Operation) int {
			return cmp.Compare(a.Output.(outcome).version, b.Output.(outcome).version)
		})
		for i, w := range writes {
			out := w.Output.(outcome)
			if i > 0 {
				out.before = writes[i-1].Output.(outcome).version
			}
			out.final = i+1 == len(writes) || writes[i+1].Input.(operation).verb == "create"
			w.Output = out
		}
		if !porcupine.CheckOperations(register, ops) {
			return false
		}
	}
	return true
}

// register is what one object of the API is: created once, replaced or deleted under a guard, read. Versions are the
// server's choice, so the model takes over those that it is told; they must rise, and everyone must be told the same.
var register = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, in, out any) (bool, any) { return step(s.(state), in.(operation), out.(outcome)) },
}

// byKey cuts a history into those of the keys: each must be linearizable by itself.
func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	keys := map[string][]porcupine.Operation{}
	for _, o := range history {
		key := o.Input.(operation).key
		keys[key] = append(keys[key], o)
	}
	return slices.Collect(maps.Values(keys))
}

func step(s state, in operation, out outcome) (legal bool, next state) {
	want := ""
	switch guarded := in.version != 0 && in.version != s.last; {
	case in.verb == "create" && s.exists:
		want = string(metav1.StatusReasonAlreadyExists)
	case in.verb != "create" && !s.exists:
		want = string(metav1.StatusReasonNotFound)
	case (in.verb == "update" || in.verb == "delete") && guarded:
		want = string(metav1.StatusReasonConflict)
	}
	if want != "" || out.failed != "" {
		return out.failed == want, s
	}
	switch in.verb {
	case "get":
		return out == outcome{value: s.value, version: s.last}, s
	case "delete":
		return s.final, state{last: s.last}
	}
	legal = out.version > s.last && out.before == s.last && out.value == in.value
	return legal, state{exists: true, value: out.value, last: out.version, final: out.final}
}

// TestLinearizability: fifty clients create, update, delete and read ten objects at once, with and without
// preconditions, while watches are cut and history is forgotten. What each was answered fits one order of all the
// operations, in which each takes effect between its request and its answer.
func TestLinearizability(t *testing.T) {
	const clients, operations, keys = 50, 30, 10
	server, config := start(t, localapi.Options{HistoryLimit: 100})
	client := clientset(t, config).CoreV1().ConfigMaps("default")
	ctx, stop := context.WithCancel(t.Context())
	var disturbers sync.WaitGroup
	disturbers.Go(func() { cutWatches(ctx, client) })
	disturbers.Go(func() { compactAlways(ctx, server) })

	histories := make([][]porcupine.Operation, clients)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			c := &recordingClient{
				maps: client, id: i, begin: begin, rnd: rand.New(rand.NewPCG(1, uint64(i))),
				seen: map[string]int64{},
			}
			for n := range operations {
				c.do(t, n, fmt.Sprintf("k%d", c.rnd.IntN(keys)))
			}
			histories[i] = c.history
		})
	}
	wg.Wait()
	stop()
	disturbers.Wait()
	var history []porcupine.Operation
	for _, h := range histories {
		history = append(history, h...)
	}
	if !linearizable(history) {
		t.Errorf("the history of %d operations is not linearizable", len(history))
	}
}

// recordingClient performs operations and writes down what it was answered.
type recordingClient struct {
	maps    corev1client.ConfigMapInterface
	id      int
	begin   time.Time
	rnd     *rand.Rand
	seen    map[string]int64 // versions, by key
	history []porcupine.Operation
}

// do performs the n-th operation.
func (c *recordingClient) do(t *testing.T, n int, key string) {
	in := operation{
		verb: []string{"create", "get", "get", "update", "update", "update", "delete"}[c.rnd.IntN(7)],
		key:  key,
	}
	in.value = fmt.Sprintf("%d-%d", c.id, n)
	if c.rnd.IntN(2) == 0 && (in.verb == "update" || in.verb == "delete") {
		in.version = c.seen[key]
	}
	called := time.Since(c.begin)
	cm, err := c.perform(t.Context(), in)
	out := outcome{failed: string(apierrors.ReasonForError(err))}
	if err != nil && out.failed == "" {
		t.Errorf("%+v: %v", in, err)
		return
	}
	if err == nil && cm != nil {
		out.value, out.version = cm.Data["v"], parseVersion(t, cm.ResourceVersion)
		c.seen[key] = out.version
	}
	c.history = append(c.history, porcupine.Operation{
		ClientId: c.id, Input: in, Output: out, Call: int64(called), Return: int64(time.Since(c.begin)),
	})
}

func (c *recordingClient) perform(ctx context.Context, in operation) (*corev1.ConfigMap, error) {
	cm := configMap(in.key, "v", in.value)
	version := strconv.FormatInt(in.version, 10)
	if in.version != 0 {
		cm.ResourceVersion = version
	}
	switch in.verb {
	case "create":
		return c.maps.Create(ctx, cm, metav1.CreateOptions{})
	case "update":
		return c.maps.Update(ctx, cm, metav1.UpdateOptions{})
	case "delete":
		var o metav1.DeleteOptions
		if in.version != 0 {
			o.Preconditions = &metav1.Preconditions{ResourceVersion: &version}
		}
		return nil, c.maps.Delete(ctx, in.key, o)
	}
	return c.maps.Get(ctx, in.key, metav1.GetOptions{})
}

// cutWatches starts watches and ends them after a few events.
func cutWatches(ctx context.Context, client corev1client.ConfigMapInterface) {
	for ctx.Err() == nil {
		w, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return // the test is over
		}
		for range 20 {
			select {
			case <-w.ResultChan():
			case <-ctx.Done():
			}
		}
		w.Stop()
	}
}

// compactAlways forgets the history again and again, each time when some writes have come.
func compactAlways(ctx context.Context, server *localapi.Server) {
	for ctx.Err() == nil {
		if err := server.Compact(ctx); err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}

// TestRegisterModel: the model refuses what a linearizable store cannot answer.
func TestRegisterModel(t *testing.T) {
	at := func(call, done int64, in operation, out outcome) porcupine.Operation {
		in.key = "k"
		return porcupine.Operation{ClientId: int(call), Input: in, Output: out, Call: call, Return: done}
	}
	create := at(1, 2, operation{verb: "create", value: "a"}, outcome{value: "a", version: 1})
	update := at(3, 6, operation{verb: "update", value: "b", version: 1}, outcome{value: "b", version: 2})
	for name, c := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"read after the update": {
			[]porcupine.Operation{create, update, at(7, 8, operation{verb: "get"}, outcome{value: "b", version: 2})},
			true,
		},
		"stale read": {
			[]porcupine.Operation{create, update, at(7, 8, operation{verb: "get"}, outcome{value: "a", version: 1})},
			false,
		},
		"read during": {
			[]porcupine.Operation{create, update, at(4, 5, operation{verb: "get"}, outcome{value: "a", version: 1})},
			true,
		},
		"lost update": {
			[]porcupine.Operation{
				create, update,
				at(7, 8, operation{verb: "update", value: "c", version: 1}, outcome{value: "c", version: 3}),
			}, false,
		},
		"second create": {
			[]porcupine.Operation{
				create,
				at(3, 4, operation{verb: "create", value: "c"}, outcome{value: "c", version: 3}),
			}, false,
		},
	} {
		if got := linearizable(c.history); got != c.want {
			t.Errorf("%s: linearizable %v, want %v", name, got, c.want)
		}
	}
}
