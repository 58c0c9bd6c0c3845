package simtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/gate"
)

// op is something that waits for the scheduler: a request, an event of a watch, or a step of the user.
type op struct {
	process *process
	cluster string // the server that request was sent to
	request *gate.Request
	event   *gate.Frame // of the watch that request opened
	step    string      // what it is called, if it is the user's or goes outside of the cluster
	settle  bool

	// round is when the scheduler first saw it, and order the rank among those that it saw at the same time.
	round int
	order string

	// verdict is sent once, by the scheduler, to the goroutine that parked; its capacity is 1.
	verdict chan verdict

	// number counts the writes, reads or events of the program; 0 until the scheduler has chosen the op.
	number int

	// fault is what happens to it, if anything. moment is its line in the story; nil if it has none.
	fault  *runFault
	moment *moment

	// stranger, if not "", is the finding if the request succeeds.
	stranger string
}

// verdict is the scheduler's decision about an op.
type verdict struct {
	gate.Verdict
	dropped bool // the user's script ends
}

// writes reports whether the op is a write that faults and judges care about: not of a lease, an event or a review.
func (o *op) writes() bool {
	return o.request != nil && o.event == nil && o.request.Mutates() && !bookkeeping(o.resource()) &&
		len(o.request.Query["dryRun"]) == 0
}

func (o *op) reads() bool {
	return o.request != nil && o.event == nil && !o.request.Mutates() && o.request.Resource != "" &&
		!bookkeeping(o.resource())
}

func (o *op) resource() resource {
	return resource{schema.GroupResource{Group: o.request.Group, Resource: o.request.Resource}, o.cluster}
}

// object names what an event is about.
func (o *op) object() id { return id{o.resource(), o.event.Namespace, o.event.Name} }

// revision returns the resource version of an event, or 0 if the server sent none.
func (o *op) revision() int64 {
	revision, err := strconv.ParseInt(o.event.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// bookkeeping reports whether objects of a resource say nothing about the state of the world.
func bookkeeping(r resource) bool {
	switch r.Group {
	case "coordination.k8s.io", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io":
		return true
	}
	return r.Group == "" && r.Resource == "events"
}

// bookkeepingPath is bookkeeping for the path of a request that does not reach a server.
func bookkeepingPath(path string) bool {
	parts := append(strings.Split(strings.Trim(path, "/"), "/"), "", "", "", "")
	if parts[0] == "apis" {
		return bookkeeping(resource{GroupResource: schema.GroupResource{Group: parts[1]}})
	}
	if parts[2] == "namespaces" { // api/v1/namespaces/NAMESPACE/RESOURCE
		parts = parts[2:]
	}
	return parts[2] == "events"
}

// signature names what the op does, without what differs between runs of the same program.
func (o *op) signature() string {
	if o.step != "" {
		return o.step
	}
	r := o.request
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if o.event != nil {
		return strings.ToLower(string(o.event.Type)) + " " + o.object().String()
	}
	if r.Resource == "" {
		return r.Verb + " " + r.Path
	}
	return strings.TrimRight(r.Verb+" "+resource+" "+strings.Trim(r.Namespace+"/"+r.Name, "/"), " ") + in(o.cluster)
}

// entrance is the gate of one API server.
type entrance struct {
	*world
	cluster string
}

// Before implements [gate.Gate].
func (w entrance) Before(ctx context.Context, r *gate.Request) gate.Verdict {
	p, ok := ctx.Value(senderKey{}).(*sender)
	if !ok || discovers(r) {
		return gate.Verdict{} // a request of the user, whose step was released, or one that nothing depends on
	}
	o := &op{process: p.process, cluster: w.cluster, request: r, verdict: make(chan verdict, 1)}
	o.order = fmt.Sprintf("%s %s %s %x", p.name(), o.signature(), r.Query.Encode(), p.body)
	return w.park(ctx, o).Verdict
}

// discovers reports whether a request asks for the resources or the version of the API, not for objects. Such a request
// does not wait for the scheduler, because clients hold a mutex meanwhile, as controller-runtime's cache does. Whoever
// waits for a mutex is not blocked in the sense of [synctest.Wait], so the scheduler would wait forever.
func discovers(r *gate.Request) bool { return r.Resource == "" }

// Frame implements [gate.Gate].
func (w entrance) Frame(ctx context.Context, r *gate.Request, f gate.Frame) gate.Verdict {
	p, ok := ctx.Value(senderKey{}).(*sender)
	if !ok {
		return gate.Verdict{}
	}
	o := &op{process: p.process, cluster: w.cluster, request: r, event: &f, verdict: make(chan verdict, 1)}
	o.order = p.name() + " watch " + r.Path + " " + r.Query.Encode() + in(w.cluster)
	return w.park(ctx, o).Verdict
}

// park waits for the verdict. When ctx ends first, the op is lost, unless it is a write that is under way while its
// sender is paused.
func (w *world) park(ctx context.Context, o *op) verdict {
	lost := verdict{Verdict: gate.Verdict{Action: gate.Drop}, dropped: true}
	w.mu.Lock()
	if w.ended || o.process != nil && o.process.dead.Load() {
		w.mu.Unlock()
		return lost
	}
	w.parked = append(w.parked, o)
	w.mu.Unlock()
	w.signal()
	select {
	case v := <-o.verdict:
		return v
	case <-ctx.Done():
	}
	if w.lose(o) {
		return lost
	}
	return <-o.verdict
}

// lose removes an op whose client has given up. It reports false if the op happens all the same.
func (w *world) lose(o *op) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.fault != nil && o.fault.Kind == pauseLeader && !w.ended {
		return false
	}
	w.parked = slices.DeleteFunc(w.parked, func(other *op) bool { return other == o })
	return true
}

// signal wakes the scheduler.
func (w *world) signal() {
	select {
	case w.arrived <- struct{}{}:
	default: // It is awake, or will be.
	}
}

// After implements [gate.Gate].
func (w *world) After(ctx context.Context, r *gate.Request, a gate.Answer) gate.Verdict {
	p, ok := ctx.Value(senderKey{}).(*sender)
	if !ok || discovers(r) {
		return gate.Verdict{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.inFlight[r]
	if o == nil {
		return gate.Verdict{Action: gate.Drop} // Its client gave up.
	}
	delete(w.inFlight, r)
	w.note(o, a)
	p.saw(o, a)
	if o.fault == nil {
		return gate.Verdict{}
	}
	if o.fault.Kind.crashes() {
		p.restart = true
		p.kill()
	}
	return o.fault.after()
}

// saw notes what the answer tells the process about identities of objects.
func (p *process) saw(o *op, a gate.Answer) {
	revision, err := strconv.ParseInt(a.ResourceVersion, 10, 64)
	if a.Code >= 300 || err != nil || o.fault != nil && o.fault.after().Action != gate.Pass {
		return
	}
	if o.request.Verb == "list" {
		p.lists[o.resource()] = append(p.lists[o.resource()], revision)
		return
	}
	p.sees(id{o.resource(), o.request.Namespace, a.Name}, revision)
}

func (p *process) sees(i id, revision int64) { p.sights[i] = append(p.sights[i], revision) }

// knows reports whether the process was shown the object of that name during that life.
func (p *process) knows(i id, l life) bool {
	during := func(r int64) bool { return l.born <= r && (l.died == 0 || r < l.died) }
	return slices.ContainsFunc(p.lists[i.resource], during) || slices.ContainsFunc(p.sights[i], during)
}

// String is for debugging.
func (o *op) String() string { return fmt.Sprintf("%s %s", o.order, o.signature()) }
