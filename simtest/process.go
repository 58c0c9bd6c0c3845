package simtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// process is one process of the program, or of the others.
type process struct {
	world  *world
	number int
	other  bool
	build  func(e *Env) (Program, error)

	ctx    context.Context // of Run
	cancel context.CancelFunc
	net    context.Context // of its connections
	cut    context.CancelFunc

	// dead processes reach the server no more.
	dead atomic.Bool

	// stopped is set when Run has returned; err is what it returned.
	stopped atomic.Bool
	err     error
	built   atomic.Bool // Build has returned
	restart bool        // the end was planned, and another process follows
	reaped  bool        // the scheduler has seen that it stopped
	stopBy  time.Time   // when Run must have returned; set when its context ends

	// lagging, if not 0, is the revision of the replica that the process reads from.
	lagging int64

	// nextLags is lagging of the process that follows this one.
	nextLags int64

	// caches compare a cache with the API server. Build adds them.
	caches []func(ctx context.Context, s *State) error

	// leads is set while it holds the lease; deposed once another process has got it.
	leads, deposed bool

	// lists has the revision of each list that the process got, and sights that of each object that it got otherwise.
	lists  map[resource][]int64
	sights map[id][]int64
}

// name is what stories call it.
func (p *process) name() string {
	if p.other {
		return fmt.Sprintf("other %d", p.number)
	}
	return fmt.Sprintf("program %d", p.number)
}

// start builds and runs the process.
func (w *world) start(p *process) {
	p.world = w
	p.lists, p.sights = map[resource][]int64{}, map[id][]int64{}
	p.ctx, p.cancel = context.WithCancel(klog.NewContext(w.ctx, w.logger()))
	p.net, p.cut = context.WithCancel(w.ctx)
	w.processes = append(w.processes, p)
	w.running.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				p.err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			}
			p.stopped.Store(true)
			w.signal()
		}()
		p.err = p.run()
	})
}

// run builds the program and runs it. Both may send requests.
func (p *process) run() error {
	program, err := p.build(&Env{p})
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	if program == nil {
		return errors.New("no program and no error from Build")
	}
	p.built.Store(true)
	return program.Run(p.ctx)
}

// live returns the processes of the program that run.
func (w *world) live() []*process {
	var live []*process
	for _, p := range w.processes {
		if !p.other && !p.dead.Load() && !p.stopped.Load() {
			live = append(live, p)
		}
	}
	return live
}

// reap looks after processes that have ended. It reports whether it has started another.
func (w *world) reap() (started bool) {
	running := false
	for _, p := range slices.Clone(w.processes) {
		if !p.stopped.Load() {
			running = true
			continue
		}
		if p.reaped {
			continue
		}
		p.reaped = true
		late := w.parkedWrite(p)
		p.kill()
		if p.other {
			continue
		}
		if late != nil {
			p.outlives(late.signature())
		}
		if w.judgeExit(p); w.phase == stopping || w.failed() {
			continue
		}
		running = true
		if p.restart && w.phase == scripting && w.goesOnElsewhere(p) {
			w.record.pruned = true
			return false
		}
		w.restart(p)
		started = true
	}
	if w.phase == stopping && !running {
		w.phase = over
	}
	return started
}

// parkedWrite returns a write of the process that waits, or nil. When a leader is paused, writes that wait may be
// packets in the network, whose sender has given up: see detached.
func (w *world) parkedWrite(p *process) *op {
	if w.plan.pauses() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.parked, func(o *op) bool { return o.process == p && o.writes() }); i >= 0 {
		return w.parked[i]
	}
	return nil
}

// outlives reports a write that the process sends after Run has returned.
func (p *process) outlives(write string) {
	if !p.other {
		p.world.fail(RuleStop, "late write", p.name()+" writes after Run has returned: "+write)
	}
}

// restart starts the next process in the place of one that ended.
func (w *world) restart(p *process) {
	next := &process{number: w.processes[len(w.processes)-1].number + 1, build: p.build, lagging: p.nextLags}
	text := next.name() + " starts"
	if next.lagging != 0 {
		text += " on a replica at revision " + strconv.FormatInt(next.lagging, 10)
		w.hold(&hold{process: next, events: true, after: next.lagging, idle: lagIdle, limit: lagLimit})
	}
	w.tell("", text)
	w.lastChange = time.Now()
	w.start(next)
}

// kill ends the process at once: nothing that it sends from now on reaches the server.
func (p *process) kill() {
	p.dead.Store(true)
	p.stop()
	p.cut()
}

func (w *world) logger() klog.Logger {
	if w.verbose {
		return klog.Background()
	}
	return logr.Discard()
}

// senderKey is the key of the sender in a request's context.
type senderKey struct{}

// sender is who sent a request.
type sender struct {
	*process

	// body is a hash of the request's body. It orders creates, whose names the gate does not know.
	body uint64
}

// hashBody returns a hash of the body, or 0 if it has none or can be read only once.
func hashBody(r *http.Request) uint64 {
	if r.GetBody == nil {
		return 0
	}
	body, err := r.GetBody()
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	_, _ = io.Copy(h, body) // from memory
	_ = body.Close()
	return h.Sum64()
}

// transport sends the requests of one process. The host of a request selects the API server.
type transport struct{ process *process }

// next returns the transport to the API server of a host.
func (t *transport) next(host string) http.RoundTripper {
	s := t.process.world.servers[host]
	if s == nil {
		s = t.process.world.servers[""]
	}
	return s.api.RESTConfig().Transport
}

// timeoutSeconds is the parameter that says how long a watch is to last. Clients choose five to ten minutes at random,
// which would make runs differ. Here it is always watchLength. That is no multiple of the minute after which the server
// sends bookmarks: which of two timers that end at one instant wins is chance.
const timeoutSeconds = "timeoutSeconds"

const watchLength = 125 * time.Second

// otherWatchLength is watchLength for the others, which nobody judges when they list again. A garbage collector has a
// watch of each resource, so it is as long as clients let it be: they give up after five minutes or more.
const otherWatchLength = 295 * time.Second

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.process.dead.Load() {
		if t.process.stopped.Load() && r.Method != http.MethodGet && !bookkeepingPath(r.URL.Path) {
			t.process.outlives(r.Method + " " + r.URL.Path)
		}
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, fmt.Errorf("simtest: this process is dead: %w", syscall.ECONNREFUSED)
	}
	if w := t.process.world; w.limits.answers != nil && !w.redefined.Load() && asksForResources(r) {
		return w.limits.answers.roundTrip(r, t.next(r.URL.Host))
	}
	from := &sender{t.process, hashBody(r)}
	if t.process.world.plan.pauses() && r.Method != http.MethodGet {
		return t.detached(r, from)
	}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), senderKey{}, from))
	context.AfterFunc(t.process.net, cancel)
	r = r.WithContext(ctx)
	if query := r.URL.Query(); query.Has(timeoutSeconds) {
		length := watchLength
		if t.process.other {
			length = otherWatchLength
		}
		query.Set(timeoutSeconds, strconv.Itoa(int(length/time.Second)))
		query.Del("timeout") // Typed clients of client-go say the same once more; servers do not read it.
		u := *r.URL
		u.RawQuery = query.Encode()
		r.URL = &u
	}
	return t.next(r.URL.Host).RoundTrip(r)
}

// stop asks the process to end.
func (p *process) stop() {
	p.stopBy = time.Now().Add(stopWithin)
	p.cancel()
}

// detached sends a request that goes on after its client has given up, as a packet in the network does.
func (t *transport) detached(r *http.Request, from *sender) (*http.Response, error) {
	type result struct {
		response *http.Response
		err      error
	}
	done := make(chan result, 1) // for the one answer, which nobody may wait for
	go func() {
		ctx := context.WithValue(t.process.world.ctx, senderKey{}, from)
		response, err := t.next(r.URL.Host).RoundTrip(r.WithContext(ctx))
		done <- result{response, err}
	}()
	select {
	case got := <-done:
		return got.response, got.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
