package simtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"
	"weak"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
)

const (
	// stopWithin is how long, in virtual time, a process may take to return after its context ended.
	stopWithin = 2 * time.Minute
	// restWithin is how long, in virtual time, a run may take.
	restWithin = 48 * time.Hour
	// otherStart is how much later the run with the second seed begins, so that times in texts differ.
	otherStart = 37*time.Hour + 13*time.Minute + 7*time.Second
	// maxRestarts is how often a process may end by itself in one run.
	maxRestarts = 5
)

// world is one run of a scenario. The goroutine that calls run is the scheduler: it alone decides what happens next,
// and it does so only while every other goroutine of the bubble is blocked. That makes the run repeatable.
type world struct {
	scenario *Scenario
	plan     *runPlan
	limits   limits
	verbose  bool

	ctx     context.Context // of the user, and above those of all processes
	cancel  context.CancelFunc
	store   storage.Storage    // of all servers, so that their revisions are in one order
	servers map[string]*server // by cluster; that of Env.Config is ""
	rand    *rand.Rand

	// arrived wakes the scheduler while it lets time pass. Anybody sends; its capacity is 1, because one wake-up serves
	// all that arrived.
	arrived chan struct{}

	manyWorkers atomic.Bool // Build has asked for more than one
	redefined   atomic.Bool // somebody has changed which resources there are

	mu       sync.Mutex // guards the fields of this block
	parked   []*op      // in the order of arrival
	inFlight map[any]*op
	ended    bool // nothing parks any more
	findings []Finding
	story    []*moment
	// transports are those of all configs that Build got.
	transports []weak.Pointer[transport]
	outside    map[string]any // by the name that Outside got

	// What follows belongs to the scheduler.
	processes  []*process
	running    sync.WaitGroup // counts goroutines of processes and the script
	scripted   atomic.Bool    // the script has returned
	round      int            // calls of choose
	choices    int            // calls of choose that had a choice
	linger     time.Time      // until then the scheduler lets time pass
	holds      []*hold
	lastChange time.Time
	began      time.Time
	first      int64 // the revision of the start
	observed   int64 // the revision up to which all changes are known
	state      *State
	lives      map[id][]life          // of all objects that have had that name, in order
	known      map[string]named       // all objects that have existed, by UID
	deleters   map[id]author          // of objects that are terminating
	listed     map[*gate.Request]bool // watches of the program that have sent a bookmark
	current    *op
	counts     [3]int // by place: writes, reads and events of the program so far
	phase      phase
	relist     map[string]bool // watches that have failed with "expired" in the phase relisting
	exits      int
	settles    int            // how often the user has seen the program settle
	hopeless   bool           // the run cannot go on
	moved      time.Time      // the virtual time of the last op
	busy       int            // ops since time last moved
	asked      map[string]int // requests of the program by signature, since askedSince, while nothing changed
	askedSince time.Time
	record     run
}

// server is the API server of a cluster.
type server struct {
	cluster string
	api     *localapi.Server
	seen    int64           // the revision up to which the run has taken note of the writes
	them    *client.Cluster // the user's client
}

// limits bound a run.
type limits struct {
	writes  int
	cold    bool // judge a cold restart
	trace   bool
	answers *answers      // nil: each run asks its own server
	steps   *atomic.Int64 // counts what the scheduler does

	// known reports whether another run goes on from the same state; see [fingerprint]. Nil: none does.
	known func(fingerprint) bool
}

// simulate performs one run. It must be called in a bubble.
func simulate(s *Scenario, p *runPlan, l limits, verbose bool) *run {
	if p.Seed == secondSeed {
		time.Sleep(otherStart)
	}
	w := &world{
		scenario: s, plan: p, limits: l, verbose: verbose, arrived: make(chan struct{}, 1), inFlight: map[any]*op{},
		rand: rand.New(rand.NewPCG(p.Seed, 1)), began: time.Now(), lastChange: time.Now(), lives: map[id][]life{},
		known: map[string]named{}, outside: map[string]any{},
		deleters: map[id]author{}, listed: map[*gate.Request]bool{},
		state: &State{objects: map[id]stored{}, scheme: s.scheme()}, store: memory.New(), servers: map[string]*server{},
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	defer w.cancel()
	if err := w.setUp(); err != nil {
		w.record.broken = err
	} else {
		w.schedule()
	}
	w.tearDown()
	r := w.record // A pointer into w would keep all of w.
	r.findings, r.story, r.plan = w.findings, w.story, p
	r.manyWorkers, r.transports = w.manyWorkers.Load(), w.transports
	return &r
}

func (w *world) setUp() error {
	for i, cluster := range append([]string{""}, w.scenario.Clusters...) {
		if err := w.serve(cluster, rand.NewPCG(w.plan.Seed, uint64(2+i))); err != nil {
			return fmt.Errorf("new API server%s: %w", in(cluster), err)
		}
	}
	w.observe()
	w.first, w.record.first = w.state.Revision, w.state.Revision
	for i, build := range w.scenario.Others {
		w.start(&process{number: i + 1, other: true, build: build})
	}
	if w.plan.OneWorker {
		w.tell("", "every controller has one worker")
	}
	for i := range max(w.plan.Processes, 1) {
		w.start(&process{number: i + 1, build: w.scenario.Build})
	}
	w.running.Go(func() {
		defer func() { w.scripted.Store(true); w.signal() }()
		w.scenario.Script(&User{world: w, server: w.servers[""]})
	})
	return nil
}

// serve starts the API server of a cluster.
func (w *world) serve(cluster string, r *rand.PCG) (err error) {
	s := &server{cluster: cluster}
	o := w.scenario.API
	o.Gate, o.Scheme, o.HistoryLimit, o.Rand = entrance{w, cluster}, w.scenario.scheme(), -1, r
	o.Storage, o.Tenant = w.store, cluster
	if s.api, err = localapi.New(o); err != nil {
		return err
	}
	w.servers[cluster] = s
	if err = s.api.Seed(w.ctx, w.scenario.Objects...); err != nil {
		return fmt.Errorf("the scenario's objects: %w", err)
	}
	s.them, err = client.New(s.api.RESTConfig(), client.Options{Scheme: w.scenario.scheme()})
	return err
}

// tearDown ends everything that is left.
func (w *world) tearDown() {
	w.mu.Lock()
	w.ended = true
	parked := w.parked
	w.parked = nil
	w.mu.Unlock()
	for _, p := range w.processes {
		p.kill()
	}
	w.cancel()
	for _, o := range parked {
		o.verdict <- verdict{dropped: true}
	}
	for _, s := range w.servers {
		_ = s.api.Close()
	}
	_ = w.store.Close() // It is in memory, and has nothing to lose.
	for range int(stopWithin / time.Second) {
		synctest.Wait()
		working := func(p *process) bool { return !p.stopped.Load() }
		if w.scripted.Load() && !slices.ContainsFunc(w.processes, working) {
			return
		}
		time.Sleep(time.Second)
	}
}

// schedule lets one thing happen after the other until the run is over.
func (w *world) schedule() {
	for w.phase != over && w.record.broken == nil && !w.failed() {
		synctest.Wait()
		w.limits.steps.Add(1)
		if w.reap() {
			continue // A process has started: its first requests come first.
		}
		if w.record.pruned {
			return
		}
		if o := w.choose(); o != nil {
			w.step(o)
			continue
		}
		deadline, due := w.deadline()
		if due {
			continue
		}
		timer := time.NewTimer(time.Until(deadline))
		select {
		case <-w.arrived:
		case <-timer.C:
		}
		timer.Stop()
	}
}
