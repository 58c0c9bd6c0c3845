package multicluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// At random, names are announced, replaced, made unready, dead or slow, and removed, while controllers come and go. No
// two incarnations of a name are ever worked on at once, and each request reaches the cluster that its event came from.
// In the end every object of every cluster is reconciled. The bubble fails the test if a goroutine is left.
func TestRandomFleets(t *testing.T) {
	for seed := range uint64(size(t, "FLYBALL_FLEET_SEEDS", 6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newRandomFleet(t, seed).run(t) })
		})
	}
}

// randomFleet is a fleet that the test changes at random, and the test's record of the changes.
type randomFleet struct {
	*rand.Rand
	world *world
	sites []*site

	mu sync.Mutex
	// announced is the site of each name, by number. A name that left or is not ready has none.
	announced map[string]int
	// working is the number of running reconciles for each name, by identity of the incarnation.
	working map[string]map[string]int
	done    map[string]bool
	wrong   []string
}

const randomSites = 6

func newRandomFleet(t *testing.T, seed uint64) *randomFleet {
	s := &randomFleet{
		Rand: rand.New(rand.NewPCG(seed, 2)), announced: map[string]int{},
		working: map[string]map[string]int{}, done: map[string]bool{},
	}
	o := multicluster.Options{DrainTimeout: time.Duration(s.IntN(20)) * time.Second, ClusterWorkers: 1 + s.IntN(3)}
	s.world = newWorld(t, o, manager.Options{})
	for i := range randomSites {
		s.sites = append(s.sites, newSite(t))
		s.sites[i].create(t, fmt.Sprint("at-", i), fmt.Sprint("also-at-", i))
	}
	return s
}

func (s *randomFleet) Reconcile(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
	c, err := clusterOf(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	identity := c.Info().Identity
	s.begin(r, identity)
	defer s.end(r, identity)
	if !strings.HasSuffix(r.Name, "at-"+identity) {
		s.errorf("%v was asked of %s", r, identity)
	}
	s.mu.Lock()
	wait := time.Duration(s.IntN(3000)) * time.Millisecond
	retry := time.Duration(s.IntN(3)) * time.Minute
	s.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return reconcile.Result{}, ctx.Err()
	}
	if err := c.Get(ctx, r.NamespacedName, &corev1.ConfigMap{}, client.Live); err != nil {
		return reconcile.Result{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[r.String()] = true
	return reconcile.Result{RequeueAfter: retry}, nil
}

func (s *randomFleet) begin(r multicluster.Request, identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working[r.Cluster] == nil {
		s.working[r.Cluster] = map[string]int{}
	}
	s.working[r.Cluster][identity]++
	for other, n := range s.working[r.Cluster] {
		if other != identity && n > 0 {
			s.wrong = append(s.wrong, fmt.Sprintf("%s is worked on as %s and as %s", r.Cluster, identity, other))
		}
	}
}

func (s *randomFleet) end(r multicluster.Request, identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working[r.Cluster][identity]--
}

func (s *randomFleet) errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// number returns a random number. Reconciles draw from the same source.
func (s *randomFleet) number(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.IntN(n)
}

func (s *randomFleet) run(t *testing.T) {
	s.world.complete(t, s)
	s.world.start(t)
	for range 60 {
		s.step(t)
		time.Sleep(time.Duration(s.number(4000)) * time.Millisecond)
	}
	for _, site := range s.sites {
		site.setVerdict(nil)
	}
	time.Sleep(5 * time.Minute) // Every retry has happened by then.
	for name := range s.announced {
		s.announce(t, name, s.number(randomSites))
	}
	for i, site := range s.sites {
		site.create(t, fmt.Sprint("finally-at-", i))
	}
	time.Sleep(5 * time.Minute)
	s.check(t)
	s.world.end(t)
}

// step makes one random change to the fleet.
func (s *randomFleet) step(t *testing.T) {
	name, at := fmt.Sprint("c-", s.number(4)), s.number(randomSites)
	switch s.number(9) {
	case 0, 1, 2:
		s.announce(t, name, at)
	case 3:
		s.world.fleet.Leave(name)
		delete(s.announced, name)
	case 4:
		if err := s.world.fleet.Join(multicluster.Announcement{Name: name, NotReady: "upgrading"}); err != nil {
			t.Error(err)
		}
		delete(s.announced, name)
	case 5:
		s.sites[at].setVerdict(neverAnswer)
	case 6:
		s.sites[at].setVerdict(dropConnection)
	case 7:
		s.sites[at].setVerdict(nil)
	default:
		if err := s.world.local.Remove(t.Context(), "configmap"); err != nil {
			t.Error(err)
		}
		s.world.complete(t, s)
	}
}

func (s *randomFleet) announce(t *testing.T, name string, at int) {
	t.Helper()
	s.announced[name] = at
	s.world.joinAs(t, name, fmt.Sprint(at), s.sites[at], map[string]string{"at": fmt.Sprint(at)})
}

func (s *randomFleet) check(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wrong := range s.wrong {
		t.Error(wrong)
	}
	for name, at := range s.announced {
		for _, object := range []string{"at-", "also-at-", "finally-at-"} {
			if request := fmt.Sprintf("cluster://%s/default/%s%d", name, object, at); !s.done[request] {
				t.Errorf("%s was not reconciled; clusters: %s", request, s.world.Note())
			}
		}
	}
}
