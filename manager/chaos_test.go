package manager_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
)

// chaosSeeds is how many seeds TestChaos runs. FLYBALL_CHAOS_SEEDS overrides it: make chaos sets it to a thousand.
// FLYBALL_CHAOS_SEED runs a single seed.
const chaosSeeds = 5

// TestChaos runs two processes that share a lease and a small operator, and disturbs them. Requests fail, before or
// after they were applied. Watches end, and the history that they need is gone. People delete, strip and replace
// children. Leases are lost and won again. Controllers and processes are restarted. Some time after the last
// disturbance, everything must be as it should be, although no process was told to look.
func TestChaos(t *testing.T) {
	first, seeds := 0, chaosSeeds
	if n, err := strconv.Atoi(os.Getenv("FLYBALL_CHAOS_SEEDS")); err == nil {
		seeds = n
	}
	if n, err := strconv.Atoi(os.Getenv("FLYBALL_CHAOS_SEED")); err == nil {
		first, seeds = n, 1
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := func(of uint64) *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), of)) }
				c := &chaos{t: t, script: random(21), faults: random(22), start: time.Now()}
				c.run(rand.NewPCG(uint64(seed), 23))
				if t.Failed() {
					t.Logf("seed %d; what happened:\n%s", seed, strings.Join(c.steps, "\n"))
				}
			})
		})
	}
}

// chaosParents are there at the beginning, each with two children.
var chaosParents = []string{"named-a", "named-b", chaosGenerates + "-a", chaosGenerates + "-b"}

// chaos is the run of one seed.
type chaos struct {
	t         *testing.T
	start     time.Time
	server    *localapi.Server
	admin     *client.Cluster
	processes []*chaosProcess
	// script decides what happens. Only the script draws from it, so a seed makes the same script whatever the
	// processes do.
	script *rand.Rand

	mu     sync.Mutex
	steps  []string
	faults *rand.Rand
	// calm means that no request fails any more.
	calm bool
	// blind are the resources whose watches break and whose lists fail, for every process.
	blind map[string]bool
}

// chaosProcess is one of the processes. Each restart gives it a new life.
type chaosProcess struct {
	name  string
	lives int
	lease *link
	life  *life
}

func (c *chaos) step(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, fmt.Sprintf("%9.3fs %s", time.Since(c.start).Seconds(), fmt.Sprintf(format, args...)))
}

func (c *chaos) pick(n int) int { return c.script.IntN(n) }

// chance is like pick, for the gate, which must not draw from the script.
func (c *chaos) chance(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults.IntN(n)
}

func (c *chaos) sleep(most time.Duration) { time.Sleep(time.Duration(c.pick(int(most)))) }

// spared reports whether the gate lets a request pass: a request of the test itself, a request for events, or one for
// the lease, which has its own link. When the run is calm, it lets all requests pass.
func (c *chaos) spared(r *gate.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calm || strings.HasPrefix(r.UserAgent, "admin") || r.Resource == "leases" || r.Resource == "events"
}

func (c *chaos) blinded(r *gate.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blind[r.Resource]
}

// gate fails 15 % of the requests, half of them after they were applied, and ends watches.
func (c *chaos) gate() gate.Gate {
	away := gate.FailWith(apierrors.NewServiceUnavailable("chaos"))
	return gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			switch {
			case c.spared(r):
			case !r.Mutates() && c.blinded(r):
				return away
			case r.Verb == "watch" || c.chance(200) >= 15:
			case c.chance(2) == 0:
				return gate.Verdict{Action: gate.Drop}
			default:
				return away
			}
			return gate.Verdict{}
		},
		OnAnswer: func(_ context.Context, r *gate.Request, _ gate.Answer) gate.Verdict {
			if c.spared(r) {
				return gate.Verdict{}
			}
			time.Sleep(time.Duration(c.chance(int(20 * time.Millisecond))))
			if r.Verb != "watch" && c.chance(200) < 15 {
				if r.Mutates() {
					c.step("lost the answer to %s: %s %s/%s", r.UserAgent, r.Verb, r.Resource, r.Name)
				}
				return gate.Verdict{Action: gate.Drop}
			}
			return gate.Verdict{}
		},
		OnFrame: func(_ context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
			if c.spared(r) {
				return gate.Verdict{}
			}
			if c.blinded(r) || c.chance(100) < 2 {
				return gate.Verdict{Action: gate.Close}
			}
			time.Sleep(time.Duration(c.chance(int(50 * time.Millisecond))))
			return gate.Verdict{}
		},
	}
}

func (c *chaos) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *chaos) run(names rand.Source) {
	var err error
	c.blind = map[string]bool{}
	c.server, err = localapi.New(localapi.Options{Gate: c.gate(), Rand: names})
	c.must(err)
	defer c.server.Close()
	people := c.server.RESTConfig()
	people.UserAgent = "admin"
	c.admin, err = client.New(people, client.Options{})
	c.must(err)
	for _, name := range chaosParents {
		c.must(c.admin.Create(c.t.Context(), chaosParent(name, 2)))
	}
	defer c.end()
	for _, name := range []string{"p", "q"} {
		p := &chaosProcess{name: name, lease: newLink()}
		c.processes = append(c.processes, p)
		c.begin(p)
	}
	c.sleep(3 * time.Second)
	for range 5 + c.pick(15) {
		c.disturb()
		c.sleep(3 * time.Second)
	}
	c.quiet()
	time.Sleep(30 * time.Minute)
	synctest.Wait()
	c.judge()
}

func (c *chaos) end() {
	for _, p := range c.processes {
		if err := p.life.end(); err != nil {
			c.t.Errorf("process %s: %v", p.name, err)
		}
	}
}

// begin starts a process, for the first time or again.
func (c *chaos) begin(p *chaosProcess) {
	p.lives++
	config := c.server.RESTConfig()
	config.UserAgent, config.QPS = p.name+strconv.Itoa(p.lives), -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		lease := p.lease.wrap(next)
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/leases") {
				return lease.RoundTrip(r)
			}
			return next.RoundTrip(r)
		})
	})
	o := surviving()
	o.LeaderElection.Identity, o.ServerTimeout = config.UserAgent, -1
	o.LeaderElection.WarmUp = -1
	m, err := manager.New(config, o)
	c.must(err)
	c.must(chaosControllers(m))
	p.life = live(c.t, m)
	c.step("process %s runs", config.UserAgent)
}

// disturb makes one random disturbance.
func (c *chaos) disturb() {
	p := c.processes[c.pick(len(c.processes))]
	select {
	case err := <-p.life.done:
		c.step("process %s has ended: %v", p.name, err)
		c.begin(p)
	default:
	}
	acts := []func(*chaosProcess){
		c.deleteChild, c.deleteChild, c.deleteChild, c.deleteChild, c.stripChild, c.replaceChild,
		c.blindOrSee, c.blindOrSee, c.blindOrSee, c.scale, c.scale, c.deleteParent,
		c.loseLease, c.restart, c.restart, c.kill, c.gap, c.gap,
	}
	acts[c.pick(len(acts))](p)
}

// child returns one of the existing children, or nil if there is none.
func (c *chaos) child() *corev1.Secret {
	var children corev1.SecretList
	c.must(c.admin.List(c.t.Context(), &children, client.HasLabels{"of"}))
	if len(children.Items) == 0 {
		return nil
	}
	return &children.Items[c.pick(len(children.Items))]
}

func (c *chaos) deleteChild(*chaosProcess) {
	if child := c.child(); child != nil {
		c.step("somebody deletes child %s", child.Name)
		c.must(client.IgnoreNotFound(c.admin.Delete(c.t.Context(), child)))
	}
}

// stripChild removes the labels and owner references of a child.
func (c *chaos) stripChild(*chaosProcess) {
	child := c.child()
	if child == nil {
		return
	}
	c.step("somebody strips child %s", child.Name)
	before := child.DeepCopy()
	child.Labels, child.OwnerReferences = nil, nil
	c.must(client.IgnoreNotFound(c.admin.Patch(c.t.Context(), child, client.MergeFrom(before))))
}

// replaceChild deletes a child and creates an unrelated object of the same name.
func (c *chaos) replaceChild(*chaosProcess) {
	child := c.child()
	if child == nil {
		return
	}
	c.step("somebody replaces child %s", child.Name)
	c.must(client.IgnoreNotFound(c.admin.Delete(c.t.Context(), child)))
	other := &corev1.Secret{}
	other.Namespace, other.Name = child.Namespace, child.Name
	if err := c.admin.Create(c.t.Context(), other); err != nil && !apierrors.IsAlreadyExists(err) {
		c.t.Fatal(err)
	}
}

// blindOrSee cuts off the watches and lists of a resource, or lets them pass again if they were cut off. In most cases
// the history is compacted first, so that the watches must list again.
func (c *chaos) blindOrSee(*chaosProcess) {
	resource := []string{"secrets", "secrets", "replicasets", "configmaps"}[c.pick(4)]
	c.mu.Lock()
	blind := c.blind[resource]
	c.mu.Unlock()
	c.blindTo(resource, !blind)
}

func (c *chaos) blindTo(resource string, blind bool) {
	if !blind && c.pick(4) > 0 {
		c.step("the history is compacted")
		c.must(c.server.Compact(c.t.Context()))
	}
	c.mu.Lock()
	c.blind[resource] = blind
	c.mu.Unlock()
	c.step("blind to %s: %v", resource, blind)
}

func (c *chaos) parent() *appsv1.ReplicaSet {
	var parents appsv1.ReplicaSetList
	c.must(c.admin.List(c.t.Context(), &parents))
	if len(parents.Items) == 0 {
		return nil
	}
	return &parents.Items[c.pick(len(parents.Items))]
}

func (c *chaos) scale(*chaosProcess) {
	parent := c.parent()
	if parent == nil {
		return
	}
	before, n := parent.DeepCopy(), int32(c.pick(4))
	c.step("parent %s is to have %d children", parent.Name, n)
	parent.Spec.Replicas = &n
	c.must(client.IgnoreNotFound(c.admin.Patch(c.t.Context(), parent, client.MergeFrom(before))))
}

func (c *chaos) deleteParent(*chaosProcess) {
	if parent := c.parent(); parent != nil {
		c.step("parent %s is deleted", parent.Name)
		c.must(client.IgnoreNotFound(c.admin.Delete(c.t.Context(), parent)))
	}
	for _, name := range chaosParents {
		if err := c.admin.Create(c.t.Context(), chaosParent(name, 2)); err == nil {
			c.step("parent %s is made again", name)
		} else if !apierrors.IsAlreadyExists(err) {
			c.t.Fatal(err)
		}
	}
}

// loseLease cuts the process off from the lease for so long that it loses the lease if it held it.
func (c *chaos) loseLease(p *chaosProcess) {
	c.step("process %s is cut off from the lease", p.name)
	p.lease.set(true, 0)
	time.Sleep(11*time.Second + time.Duration(c.pick(int(20*time.Second))))
	p.lease.set(false, 0)
	c.step("process %s reaches the lease again", p.name)
}

func (c *chaos) restart(p *chaosProcess) {
	name := []string{"operator", "mirror"}[c.pick(2)]
	err := p.life.Restart(c.t.Context(), name)
	c.step("controller %s of process %s is started again: %v", name, p.name, err)
}

func (c *chaos) kill(p *chaosProcess) {
	c.step("process %s ends: %v", p.name, p.life.end())
	c.begin(p)
}

// gap is the worst case for a child: it is created and deleted while the watch is interrupted, and the next tenure or a
// restarted controller must still notice that it is gone.
func (c *chaos) gap(p *chaosProcess) {
	c.blindTo("secrets", true)
	c.scale(p)
	c.sleep(3 * time.Second)
	c.deleteChild(p)
	c.deleteChild(p)
	if c.sleep(time.Second); c.pick(2) == 0 {
		c.restart(p)
	} else {
		c.loseLease(p)
	}
	c.sleep(3 * time.Second)
	c.blindTo("secrets", false)
}

// quiet ends all disturbances, and restarts the processes that have ended.
func (c *chaos) quiet() {
	for _, p := range c.processes {
		select {
		case err := <-p.life.done:
			c.step("process %s has ended: %v", p.name, err)
			c.begin(p)
		default:
		}
	}
	c.must(c.server.Compact(c.t.Context()))
	c.mu.Lock()
	c.calm = true
	clear(c.blind)
	c.mu.Unlock()
	c.step("quiet")
}
