//lint:file-ignore SA1019 Endpoints are deprecated, but one of the controllers shown here handles them.

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/inspect/tap"
	"github.com/flyball-dev/flyball/internal/loopback"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
)

// cluster is an embedded API server, a fake kubelet, and a manager with the controllers. The kubelet has its own
// manager, because on a real cluster it is another process: its work does not appear in the counts. The namespace
// controller, which the story does not mention, runs there too.
type cluster struct {
	o      Options
	server *localapi.Server
	nodes  *manager.Manager
	// inspector is nil if the manager does not show itself, and tap if nothing is to be held up.
	inspector *inspect.Inspector
	tap       *tap.Tap

	client  client.Client // of the user in the story
	network *network

	// elects means that the programs compete for a lease, and that ahead, which is not shown, gets it first.
	elects bool
	ahead  *program // nil if nothing elects

	changed chan struct{} // see director
	filled  chan struct{} // closed when the caches of a program are filled, which may crash before

	mu sync.Mutex // guards what follows
	// program is the one whose caches are filled. After a crash it is the one that has ended, until those of the next
	// are.
	program *program
	// running is the program that runs.
	running *program
	// ended are the counts of the programs before.
	ended counts
}

// program is one life of the controllers' process.
type program struct {
	manager *manager.Manager
	page    http.Handler // nil if the manager does not show itself
	names   []string     // of the controllers
	loops   []func() reconcile.Stats
	view    view
	// crashed makes all requests fail: they are of a process that is gone. cut makes those for leases fail.
	crashed, cut atomic.Bool
	ended        atomic.Bool // Its manager has ended by itself.
	// life ends when the program is stopped, which stop does.
	life context.Context
	stop context.CancelFunc
}

// leads reports whether p has the lease.
func (p *program) leads() bool {
	select {
	case <-p.manager.Elected():
		return !p.ended.Load()
	default:
		return false
	}
}

// view holds the caches that the story reads. They are the same that the controllers use.
type view struct {
	deployments informer.Informer[*appsv1.Deployment]
	sets        informer.Informer[*appsv1.ReplicaSet]
	pods        informer.Informer[*corev1.Pod]
	services    informer.Informer[*corev1.Service]
	endpoints   informer.Informer[*corev1.Endpoints]
	slices      informer.Informer[*discoveryv1.EndpointSlice]
}

// open builds the cluster without starting it. Its manager shows itself, and the story, if there is to be a page.
func (c *cluster) open(delay time.Duration, story func() any) (err error) {
	c.changed, c.filled = make(chan struct{}, 1), make(chan struct{})
	o := c.o.API
	if c.o.Step {
		c.tap = tap.New(tap.Options{Match: ofControllers, Crash: c.crash})
		o.Gate = c.tap.Gate()
	}
	if c.server, err = localapi.New(o); err != nil {
		return err
	}
	if err := c.build(delay, story); err != nil {
		return errors.Join(err, c.server.Close())
	}
	return nil
}

func (c *cluster) build(delay time.Duration, story func() any) error {
	config := c.config()
	var err error
	if c.client, err = client.New(config, client.Options{}); err != nil {
		return err
	}
	if c.nodes, err = manager.New(c.config(), manager.Options{}); err != nil {
		return err
	}
	if err := nodes.Add(c.nodes, kubelet.Options{Delay: delay, Spread: delay / 2, Seed: 1}); err != nil {
		return err
	}
	if c.o.shows() {
		io := inspect.Options{Story: story, Book: c.o.Book}
		if c.tap != nil {
			io.Tap = c.tap
		}
		c.inspector = inspect.New(io)
	}
	if c.elects {
		if c.ahead, err = c.newProgram("a", "a", ""); err != nil {
			return err
		}
	}
	c.program, err = c.newProgram("b", controllersAgent, c.o.Page)
	c.running = c.program
	return err
}

// newProgram builds the manager of the controllers, which shows itself at the address page. If the programs compete for
// a lease, id is written into it.
func (c *cluster) newProgram(id, agent, page string) (*program, error) {
	p := &program{}
	p.life, p.stop = context.WithCancel(context.Background())
	config := rest.AddUserAgent(c.config(), agent)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return mortal{p, c.network, next} })
	o := manager.Options{}
	if c.elects {
		o.LeaderElection = manager.LeaderElection{
			Enabled: true, Namespace: metav1.NamespaceDefault, Name: "controllers", Identity: id,
			// The story takes the same time whenever it is played.
			Options: leader.Options{Random: func() float64 { return 0 }},
		}
	}
	shows := c.inspector != nil && agent == controllersAgent
	if shows {
		o.DebugAddr, o.Inspect = page, c.inspector
	}
	var err error
	if p.manager, err = manager.New(config, o); err != nil {
		return nil, err
	}
	if shows {
		p.page = c.inspector.Handler(p.manager)
	}
	for _, name := range controllers.Known() {
		if c.elects && name == garbagecollector.Name {
			continue // It lists everything anew when it begins to lead, which would hide what the others do.
		}
		controller, err := controllers.New(p.manager, name, controllers.Options{})
		if err != nil {
			return nil, err
		}
		if err := p.manager.Add(controller); err != nil {
			return nil, err
		}
		p.names = append(p.names, name)
		p.loops = append(p.loops, loops(controller)...)
	}
	if c.o.Add != nil {
		if err := c.o.Add(p.manager); err != nil {
			return nil, err
		}
	}
	p.view, err = newView(p.manager.Informers(), c.changed)
	return p, err
}

// mortal sends the requests of a program until it has crashed, or is cut off.
type mortal struct {
	*program
	network *network
	next    http.RoundTripper
}

var (
	errCrashed = errors.New("the program has crashed")
	errCut     = errors.New("no answer")
)

func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.crashed.Load() {
		return nil, errCrashed
	}
	if m.cut.Load() && strings.Contains(r.URL.Path, "/leases/") {
		return nil, errCut
	}
	return m.network.send(r, m.next)
}

// controllersAgent is in the user agent of the controllers' manager.
const controllersAgent = "controllers"

// ofControllers reports whether a request is one of the controllers' manager, and not an event that it records.
func ofControllers(r *gate.Request) bool {
	return strings.Contains(r.UserAgent, "/"+controllersAgent) && r.Resource != "events"
}

// loops returns the statistics functions of a controller's loops. The garbage collector has two loops.
func loops(r manager.Runnable) []func() reconcile.Stats {
	switch c := r.(type) {
	case interface{ Loops() []reconcile.Loop }:
		var all []func() reconcile.Stats
		for _, loop := range c.Loops() {
			all = append(all, loop.Stats)
		}
		return all
	case interface{ Stats() reconcile.Stats }:
		return []func() reconcile.Stats{c.Stats}
	}
	return nil
}

// config returns a client config without a rate limit, because the server is in this process.
func (c *cluster) config() *rest.Config {
	config := nodes.Quiet(c.server.RESTConfig())
	config.QPS = -1
	return config
}

// newView returns the caches of f that the story reads. It signals to changed when one of them changes.
func newView(f *informer.Factory, changed chan<- struct{}) (view, error) {
	var v view
	var errs [6]error
	v.deployments, errs[0] = informer.For[*appsv1.Deployment](f)
	v.sets, errs[1] = informer.For[*appsv1.ReplicaSet](f)
	v.pods, errs[2] = informer.For[*corev1.Pod](f)
	v.services, errs[3] = informer.For[*corev1.Service](f)
	v.endpoints, errs[4] = informer.For[*corev1.Endpoints](f)
	v.slices, errs[5] = informer.For[*discoveryv1.EndpointSlice](f)
	if err := errors.Join(errs[:]...); err != nil {
		return v, err
	}
	return v, errors.Join(
		signal(v.deployments, changed), signal(v.sets, changed), signal(v.pods, changed),
		signal(v.services, changed), signal(v.endpoints, changed), signal(v.slices, changed))
}

// signal sends to changed whenever inf's cache changes, unless a signal is already waiting.
func signal[T informer.Object](inf informer.Informer[T], changed chan<- struct{}) error {
	poke := func() { poke(changed) }
	_, err := inf.AddHandler(informer.Handler[T]{
		OnAdd:    func(T, bool) { poke() },
		OnUpdate: func(_, _ T) { poke() },
		OnDelete: func(informer.Deleted[T]) { poke() },
	}, informer.HandlerOptions{Name: "demo"})
	return err
}

func poke(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// look reads the caches one after the other. The results need not be of the same moment, but a step is done only when
// all of them agree.
func (v view) look(namespace string) state {
	s := state{sets: v.sets.List(namespace, nil), pods: v.pods.List(namespace, nil)}
	s.slices = v.slices.List(namespace, labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: name}))
	s.deployment, _ = v.deployments.Get(namespace, name)
	_, s.service = v.services.Get(namespace, name)
	s.endpoint, _ = v.endpoints.Get(namespace, name)
	return s
}

// counts returns the sums over the pipeline of the controllers' program.
func (p *program) counts() counts {
	sum := counts{watch: watched(p.manager)}
	for _, stats := range p.loops {
		s := stats()
		sum.queue += s.Adds
		sum.sync += s.Syncs
	}
	return sum
}

// counts returns the sums over all programs.
func (c *cluster) counts() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.ended.plus(c.program.counts())
	if c.ahead != nil {
		sum = sum.plus(c.ahead.counts())
	}
	return sum
}

// look reads the caches of the program whose caches are filled.
func (c *cluster) look() state {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.program.view.look(metav1.NamespaceDefault)
	switch {
	case c.program.leads():
		s.leader = "b"
	case c.ahead != nil && c.ahead.leads():
		s.leader = "a"
	}
	return s
}

// watched returns the number of watch events that the informers of a manager have received.
func watched(m *manager.Manager) (sum uint64) {
	for _, s := range m.Informers().Stats() {
		sum += uint64(s.Events)
	}
	return sum
}

// run starts everything, calls play when the caches are filled, and then stops everything, each part before those it
// depends on.
func (c *cluster) run(ctx context.Context, play func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var parts sync.WaitGroup
	var errs [3]error
	part := func(i int, name string, run func(context.Context) error) {
		parts.Go(func() {
			if err := run(running); err != nil {
				errs[i] = fmt.Errorf("%s: %w", name, err)
				stop(errs[i])
			}
		})
	}
	part(0, "kubelet", c.nodes.Run)
	if c.tap != nil {
		nodes.Settle(ctx, c.nodes)
	}
	if c.ahead != nil {
		part(2, "manager a", c.runAhead)
		select {
		case <-c.ahead.manager.Elected():
		case <-ctx.Done():
		}
	}
	part(1, "manager", func(ctx context.Context) error { return loopback.InUse(c.runPrograms(ctx)) })
	synced := false
	var err error
	select {
	case <-c.filled:
		synced = true
		if c.tap != nil {
			c.mu.Lock()
			m := c.program.manager
			c.mu.Unlock()
			nodes.Settle(ctx, m)
		}
		err = play(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if c.tap != nil {
		c.tap.Open(0)
	}
	end()
	parts.Wait()
	failed := errors.Join(errs[:]...)
	if failed != nil && !synced {
		err = nil // It is failed, once for each cache.
	}
	return errors.Join(err, failed, c.server.Close())
}

// runPrograms runs the controllers' program, and another one at the same address whenever one has crashed.
func (c *cluster) runPrograms(ctx context.Context) error {
	var syncs sync.WaitGroup
	defer syncs.Wait()
	p := c.program
	for {
		one, stop := context.WithCancel(ctx)
		context.AfterFunc(one, p.stop)
		context.AfterFunc(p.life, stop)
		if c.tap != nil {
			c.tap.Attach(one, c.inspector.Recorder())
		}
		c.mu.Lock()
		c.running = p
		c.mu.Unlock()
		running := p
		syncs.Go(func() {
			if running.manager.Informers().WaitForSync(one) == nil {
				c.takeOver(running)
			}
			select {
			case <-running.manager.Elected():
				poke(c.changed)
			case <-one.Done():
			}
		})
		err := running.manager.Run(one)
		stop()
		if !running.crashed.Load() || ctx.Err() != nil {
			return err
		}
		if p, err = c.newProgram("b", controllersAgent, running.manager.DebugAddr()); err != nil {
			return err
		}
	}
}

// ServeHTTP answers a request of the page by the program that runs, as long as it runs.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	p := c.running
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	p.page.ServeHTTP(w, r.WithContext(ctx))
}

// runAhead runs the first leader. It ends when it has lost the lease, as it must.
func (c *cluster) runAhead(ctx context.Context) error {
	err := c.ahead.manager.Run(ctx)
	c.ahead.ended.Store(true)
	poke(c.changed)
	if c.ahead.cut.Load() && errors.Is(err, leader.ErrLost) {
		return nil
	}
	return err
}

// cut cuts the first leader off from its lease.
func (c *cluster) cut() { c.ahead.cut.Store(true) }

// takeOver makes p the program that the story looks at.
func (c *cluster) takeOver(p *program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.filled:
	default:
		close(c.filled)
	}
	if c.program != p {
		c.ended = c.ended.plus(c.program.counts())
		c.program = p
	}
}

// crash ends the program that runs, as kill -9 would: none of its requests is sent any more.
func (c *cluster) crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running.crashed.Store(true)
	c.running.stop()
}
