package manager_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
)

// TestNoWriteIsAcceptedAfterTheLeasePassedOn runs two processes with one lease. The leader is partitioned from the API,
// stopped as by SIGSTOP, slowed down or killed, or its clock is moved. When it continues, it sends the requests that it
// was about to send. The test searches the audit log for writes that were accepted from a process after the other one
// had taken the lease, and counts those that the fence or the server rejected. FLYBALL_SEEDS=200 runs more seeds.
func TestNoWriteIsAcceptedAfterTheLeasePassedOn(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("FLYBALL_SEEDS"))
	if err != nil {
		seeds = 4
	}
	total := tally{}
	for seed := range uint64(seeds) {
		var got tally
		synctest.Test(t, func(t *testing.T) { got = runTenures(t, seed) })
		total.add(got)
	}
	t.Logf("%d seeds: %d writes, %d handovers (the slowest without a leader for %v), %d late writes refused, %d "+
		"accepted",
		seeds, total.writes, total.handovers, total.slowest, total.refused, total.late)
	if total.late > 0 || total.handovers < seeds || total.refused == 0 {
		t.Error("want no late write accepted, a handover for each seed, and some late writes that were refused")
	}
	// A follower sees a renewal at most 2.4 s after it was made, and takes the lease 15 s later. Another 2 s are for
	// requests.
	if bound := 15*time.Second + 2400*time.Millisecond + 2*time.Second; total.slowest > bound {
		t.Errorf("without a leader for %v, want at most %v", total.slowest, bound)
	}
}

// tally counts writes by their outcome, and handovers.
type tally struct {
	writes, handovers, refused, late int
	slowest                          time.Duration
}

func (t *tally) add(other tally) {
	t.writes += other.writes
	t.handovers += other.handovers
	t.refused += other.refused
	t.late += other.late
	t.slowest = max(t.slowest, other.slowest)
}

// candidate is one process: a manager whose controller writes twice a second.
type candidate struct {
	life *life
	// lease is the connection of the elector, and work that of the reconciler, before the fence: the fence checks the
	// requests of a stopped process when it continues.
	lease, work *link
	clock       *clock
	refused     *int
}

func newCandidate(t *testing.T, w *world, name string) *candidate {
	c := &candidate{lease: newLink(), work: newLink(), clock: &clock{}, refused: new(int)}
	c.work.deaf = true
	config := w.server.RESTConfig()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("User-Agent", name) // the elector has one of its own
			if strings.Contains(r.URL.Path, "/leases") {
				return c.lease.wrap(c.clock.wrap(name, next)).RoundTrip(r)
			}
			return next.RoundTrip(r)
		})
	})
	o := surviving()
	o.LeaderElection.Identity, o.ServerTimeout = name, -1
	m, err := manager.New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	outside := m.GetConfig()
	outside.QPS = -1
	outside.Wrap(c.work.wrap) // around the fence
	client, err := kubernetes.NewForConfig(outside)
	if err != nil {
		t.Fatal(err)
	}
	builds := 0
	guarded(t, m, &builds, func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		if r.Name != "tick" {
			return reconcile.Result{}, nil
		}
		// A careless reconciler: it does not look whether its context is over.
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "made-by-" + name + "-"},
		}
		_, err := client.CoreV1().ConfigMaps("default").Create(context.WithoutCancel(ctx), cm, metav1.CreateOptions{})
		if err != nil && strings.Contains(err.Error(), "write refused") {
			*c.refused++
		}
		return reconcile.Result{RequeueAfter: 500 * time.Millisecond}, nil
	})
	c.life = live(t, m)
	return c
}

// runTenures lets the leader fail once in each way, and judges the audit log.
func runTenures(t *testing.T, seed uint64) tally {
	random := rand.New(rand.NewPCG(seed, 11))
	w := newWorld(t)
	admin := kubernetes.NewForConfigOrDie(w.server.RESTConfig())
	tick := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tick"}}
	if _, err := admin.CoreV1().ConfigMaps("default").Create(t.Context(), tick, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	all := map[string]*candidate{"a": newCandidate(t, w, "a"), "b": newCandidate(t, w, "b")}
	refused, ways := 0, random.Perm(len(failures))
	for _, way := range ways {
		// Long enough that the process that lost the lease is a follower again.
		time.Sleep(time.Duration(12_000+random.IntN(20_000)) * time.Millisecond)
		name := holder(t, admin)
		leads := all[name]
		if leads == nil {
			continue
		}
		follows := all[other(all, name)]
		outage := time.Duration(12_000+random.IntN(20_000)) * time.Millisecond
		if failures[way].f(leads, follows, outage, random); failures[way].fatal {
			refused += *leads.refused
			delete(all, name)
			name += "x"
			all[name] = newCandidate(t, w, name)
		}
		for _, c := range []*candidate{leads, follows} {
			c.lease.set(false, 0)
			c.work.set(false, 0)
			c.clock.move(0, 1)
		}
		synctest.Wait()
		refused += restartEnded(t, w, all)
	}
	time.Sleep(40 * time.Second)
	result := judgeTenures(w)
	result.refused = refused
	for _, c := range all {
		result.refused += *c.refused
		if err := c.life.end(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	return result
}

// failures are the ways in which a leader fails.
var failures = []struct {
	name  string
	fatal bool // the process does not come back
	f     func(leads, follows *candidate, outage time.Duration, random *rand.Rand)
}{
	{"partitioned", false, func(leads, _ *candidate, outage time.Duration, _ *rand.Rand) {
		leads.lease.set(true, 0)
		leads.work.set(true, 0)
		time.Sleep(outage)
	}},
	{
		"partitioned from the lease only: the worst case, its writes would arrive", false,
		func(leads, _ *candidate, outage time.Duration, _ *rand.Rand) {
			leads.lease.set(true, 0)
			time.Sleep(outage)
		},
	},
	{
		"stopped: neither renewal nor write leaves, until it goes on", false,
		func(leads, _ *candidate, outage time.Duration, _ *rand.Rand) {
			lease, work := leads.lease.stopped(), leads.work.stopped()
			time.Sleep(outage)
			work() // the requests that it was about to send come first
			lease()
		},
	},
	{"slow", false, func(leads, _ *candidate, outage time.Duration, random *rand.Rand) {
		leads.lease.set(false, time.Duration(random.IntN(8000))*time.Millisecond)
		leads.work.set(false, time.Duration(random.IntN(3000))*time.Millisecond)
		time.Sleep(outage)
	}},
	{"killed", true, func(leads, _ *candidate, outage time.Duration, _ *rand.Rand) {
		leads.lease.set(true, 0)
		leads.work.set(true, 0)
		_ = leads.life.end() // none of its last requests reaches the server
		time.Sleep(outage)
	}},
	{
		"partitioned from the lease, the wall clocks hours apart, and the follower's runs a quarter too fast", false,
		func(leads, follows *candidate, outage time.Duration, random *rand.Rand) {
			leads.clock.move(time.Duration(random.IntN(7200)-3600)*time.Second, 1)
			follows.clock.move(time.Duration(random.IntN(7200)-3600)*time.Second, 1.25)
			time.Sleep(outage)
			leads.lease.set(true, 0)
			time.Sleep(outage)
		},
	},
}

// other returns the name of the other one of two.
func other(all map[string]*candidate, name string) string {
	for another := range all {
		if another != name {
			return another
		}
	}
	return ""
}

// restartEnded restarts the processes that ended because their work outlived the lease while it was held up. It returns
// how many of their writes were rejected.
func restartEnded(t *testing.T, w *world, all map[string]*candidate) (refused int) {
	for name, c := range all {
		select {
		case err := <-c.life.done:
			if !errors.Is(err, leader.ErrLost) {
				t.Errorf("%s ended: %v", name, err)
			}
			refused += *c.refused
			all[name] = newCandidate(t, w, name)
		default:
		}
	}
	return refused
}

func holder(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "flyball-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

// judgeTenures reads the audit log. The holder of the lease is the process that wrote it last.
func judgeTenures(w *world) (result tally) {
	var holds string
	var renewed time.Time
	for _, e := range w.audit.Writes() {
		who := e.UserAgent
		switch {
		case e.Resource == "leases":
			if holds != "" && who != holds {
				result.handovers++
				result.slowest = max(result.slowest, e.Time.Sub(renewed))
			}
			holds, renewed = who, e.Time
		case strings.HasPrefix(e.Name, "made-by-"):
			result.writes++
			if by := strings.Split(e.Name, "-")[2]; by != holds {
				result.late++
			}
		}
	}
	return result
}
