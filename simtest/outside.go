package simtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/gate"
)

// outside is the resource, and the cluster, of what is in no cluster.
const outside = "outside"

// Outside returns the state of a system outside the cluster, such as a fake of the cloud that the program uses. The
// first call in a run makes it. All later calls with that name get the same, also those for the next process after a
// crash and for [Scenario.Others]. Each run has its own.
//
// It is encoded by encoding/json, and compared whenever objects are. [Finding.Diff] and [Scenario.Ignore] name its
// fields "outside NAME: FIELD".
//
// The program must change it in [Env.Call] only. Otherwise a process that has been killed may still change it.
func Outside[T any](e *Env, name string, fresh func() T) T {
	w := e.process.world
	w.mu.Lock()
	state, ok := w.outside[name]
	w.mu.Unlock()
	if !ok {
		made := fresh()
		w.mu.Lock()
		if state, ok = w.outside[name]; !ok {
			w.outside[name], state = made, made
		}
		w.mu.Unlock()
	}
	t, ok := state.(T)
	if !ok {
		panic(fmt.Sprintf("simtest: the state outside named %q is a %T, not a %T", name, state, t))
	}
	return t
}

// Call sends a request to a system outside the cluster: it calls act, which changes what [Outside] returns. The request
// is a write of the program, and everything that goes wrong with a write is tried with it: the process is killed before
// or after it, or its answer is lost. Stories name it by what.
//
// Errors: that of act, or that of the fault. Like a client, the program cannot tell in general whether act was called.
func (e *Env) Call(ctx context.Context, what string, act func() error) error {
	p, w := e.process, e.process.world
	if p.dead.Load() && p.stopped.Load() {
		p.outlives(what)
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, senderKey{}, &sender{process: p}))
	defer cancel()
	defer context.AfterFunc(p.net, cancel)()
	o := &op{
		process: p, cluster: outside, step: what, order: p.name() + " " + what, verdict: make(chan verdict, 1),
		request: &gate.Request{Verb: "patch", Resource: outside},
	}
	if err := broken(w.park(ctx, o).Verdict); err != nil {
		return err
	}
	answer := gate.Answer{Code: http.StatusOK}
	err := act()
	if err != nil {
		answer.Code = http.StatusInternalServerError
	}
	return cmp.Or(broken(w.After(ctx, o.request, answer)), err)
}

// broken returns the error that a client sees, or nil.
func broken(v gate.Verdict) error {
	switch v.Action {
	case gate.Pass:
		return nil
	case gate.Fail:
		return fmt.Errorf("simtest: %d, %s: %s", v.Status.Code, v.Status.Reason, v.Status.Message)
	default:
		return fmt.Errorf("simtest: the connection broke: %w", syscall.ECONNRESET)
	}
}

// addOutside adds the state outside the cluster to e. What cannot be encoded is left out.
func (w *world) addOutside(e *end) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, state := range w.outside {
		var value any
		if data, err := json.Marshal(state); err != nil || json.Unmarshal(data, &value) != nil {
			continue
		}
		value = e.value(value, 0)
		fields, ok := value.(map[string]any)
		if !ok {
			fields = map[string]any{"value": value}
		}
		e.objects[outsideID(name)] = fields
	}
}

// outsideID is what stands for a state outside the cluster among the objects.
func outsideID(name string) id {
	return id{resource: resource{GroupResource: schema.GroupResource{Resource: outside}}, name: name}
}
