package simtest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

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
	plan     *Plan
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

	redefined atomic.Bool // somebody has changed which resources there are

	mu       sync.Mutex // guards the fields of this block
	parked   []*op      // in the order of arrival
	inFlight map[any]*op
	ended    bool // nothing parks any more
	findings []Finding
	story    []*moment

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
	state      *State
	lives      map[id][]life          // of all objects that have had that name, in order
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
	journal *localapi.Journal
	them    *client.Cluster // the user's client
}

// committed is a committed write of a cluster.
type committed struct {
	localapi.Change
	cluster string
}

func (c *committed) id() id {
	return id{resource{c.Resource.GroupResource(), c.cluster}, c.Namespace, c.Name}
}

// limits bound a run.
type limits struct {
	writes  int
	cold    bool // judge a cold restart
	trace   bool
	answers *answers      // nil: each run asks its own server
	steps   *atomic.Int64 // counts what the scheduler does

	// known reports whether another run goes on from the same state; see [world.fingerprint]. Nil: none does.
	known func(fingerprint) bool
}

// phase is how far a run is.
type phase int

const (
	// scripting lasts until the program has settled after the script.
	scripting phase = iota
	// relisting fails every watch that is opened with "expired", once, so that the program lists again.
	relisting
	// restarting follows a cold restart.
	restarting
	// stopping lasts until all processes have returned.
	stopping
	over
)

// simulate performs one run. It must be called in a bubble.
func simulate(s *Scenario, p *Plan, l limits, verbose bool) *run {
	if p.Seed == secondSeed {
		time.Sleep(otherStart)
	}
	w := &world{
		scenario: s, plan: p, limits: l, verbose: verbose, arrived: make(chan struct{}, 1), inFlight: map[any]*op{},
		rand: rand.New(rand.NewPCG(p.Seed, 1)), began: time.Now(), lastChange: time.Now(), lives: map[id][]life{},
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
	w.record.findings, w.record.story, w.record.plan = w.findings, w.story, p
	return &w.record
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
	if s.journal, err = s.api.Journal(0); err != nil {
		return err
	}
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
		if s.journal != nil {
			s.journal.Close()
		}
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

// deadline returns when the scheduler must act although nothing arrives. If that is now, it acts, and reports true.
func (w *world) deadline() (next time.Time, acted bool) {
	now := time.Now()
	next = w.began.Add(restWithin)
	if !now.Before(next) {
		w.giveUp(RuleRest, "time", fmt.Sprintf("objects still change after %v", restWithin))
		return next, true
	}
	earliest := func(t time.Time) bool {
		if t.Before(next) {
			next = t
		}
		return !now.Before(t)
	}
	if w.linger.After(now) {
		earliest(w.linger)
		return next, false
	}
	for _, h := range w.holds {
		if earliest(h.ends(w)) {
			w.lift(h)
			return now, true
		}
	}
	for _, p := range w.processes {
		if p.ctx.Err() != nil && !p.stopped.Load() && earliest(p.stopBy) {
			text := fmt.Sprintf("Run has not returned %v after its context ended", stopWithin)
			if !p.built.Load() {
				text = "Build has not returned. It must only make the program, and neither run it nor wait for anything"
			}
			w.giveUp(RuleStop, "stop", p.name()+": "+text)
			return now, true
		}
	}
	quiet := w.scenario.quiet()
	if w.phase == relisting {
		quiet = max(quiet, watchLength+time.Minute)
	}
	if w.settling() && earliest(w.lastChange.Add(quiet)) {
		w.settled()
		return now, true
	}
	return next, false
}

// settling reports whether somebody waits for the program to settle.
func (w *world) settling() bool {
	if w.phase == stopping || w.phase == over {
		return false
	}
	for _, h := range w.holds {
		if h.hides == nil || w.scripted.Load() {
			return false
		}
	}
	if w.scripted.Load() {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.parked, func(o *op) bool { return o.settle })
}

// settled goes on after nothing has changed for long enough.
func (w *world) settled() {
	w.lastChange = time.Now()
	if !w.scripted.Load() {
		w.mu.Lock()
		i := slices.IndexFunc(w.parked, func(o *op) bool { return o.settle })
		o := w.parked[i]
		w.parked = slices.Delete(w.parked, i, i+1)
		w.mu.Unlock()
		w.settles++
		o.verdict <- verdict{}
		return
	}
	if w.judgeCaches(); w.failed() {
		return
	}
	w.phase++
	switch w.phase {
	case relisting:
		w.end()
		w.tell("", "nothing changes any more; when a watch ends, the program must list again")
		w.relist = map[string]bool{}
	case restarting:
		if !w.limits.cold {
			w.phase = stopping
			w.stop()
			return
		}
		w.tell("", "nothing changes any more; the program stops and starts again")
		for _, p := range w.live() {
			p.restart = true
			p.stop()
		}
	case stopping:
		w.stop()
	}
}

// end records the state at the end of the script.
func (w *world) end() {
	w.record.end, w.record.ended = normalize(w.state, w.first), len(w.story)
	if w.scenario.Matches != nil {
		if err := holds(w.scenario.Matches, w.state); err != nil {
			w.fail(RuleMatches, "", "at the end: "+err.Error())
		}
	}
}

// holds calls a function of the scenario that judges a state. Its panic is its verdict: it may rely on an object that
// is not there, for example because Check tries what happens without one of the user's steps.
func holds(judge func(*State) error, s *State) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return judge(s)
}

// stop asks all processes to end.
func (w *world) stop() {
	for _, p := range w.processes {
		if !p.stopped.Load() {
			p.stop()
		}
	}
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
		p.kill()
		if p.other {
			continue
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

// observe looks at what the current op has changed.
func (w *world) observe() {
	var changes []committed
	for _, s := range w.servers {
		next, err := s.journal.Next()
		if err != nil {
			w.record.broken = err
			return
		}
		for i := range next {
			changes = append(changes, committed{next[i], s.cluster})
		}
	}
	slices.SortFunc(changes, func(a, b committed) int { return cmp.Compare(a.Revision, b.Revision) })
	for i := range changes {
		w.changed(&changes[i])
	}
}

// changed takes note of one committed write.
func (w *world) changed(c *committed) {
	i := c.id()
	w.state.apply(c)
	switch {
	case c.Object == nil:
		w.lives[i][len(w.lives[i])-1].died = c.Revision
	case c.Previous == nil:
		w.lives[i] = append(w.lives[i], life{born: c.Revision})
	}
	if w.first == 0 {
		return
	}
	if i.resource.Resource == "customresourcedefinitions" || i.resource.Resource == "apiservices" {
		w.redefined.Store(true)
	}
	if bookkeeping(i.resource) {
		w.leaseChanged(c)
		return
	}
	w.lastChange, w.asked = time.Now(), nil
	obj, process := cmp.Or(c.Object, c.Previous), 0
	if by := w.current.sender(); by != nil {
		process = by.number
	}
	w.record.changes = append(w.record.changes, change{
		id: i, revision: c.Revision, created: c.Previous == nil, deleted: c.Object == nil, doomed: doomed(c),
		by: w.author(c), generated: prefixOf(obj), process: process, settles: w.settles,
	})
	if by := w.current.sender(); by != nil && !by.other && w.phase > scripting && by.ctx.Err() == nil {
		w.fail(RuleRest, i.String(), fmt.Sprintf("%s writes although nothing has changed: %s", by.name(),
			w.current.signature()))
	}
	for _, always := range w.scenario.Always {
		if err := holds(always.Check, w.state); err != nil {
			w.fail(RuleAlways, always.Name, fmt.Sprintf("%s: %v", always.Name, err))
		}
	}
}
