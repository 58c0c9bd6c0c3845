package readyourwrites

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// seeds is how often each scenario is run for each subject.
const seeds = 20

// patience is the deadline of one read.
const patience = 10 * time.Second

// scenario is what goes wrong.
type scenario struct {
	name                                   string
	lose, thirdParty, cut, untyped, byName bool
}

var scenarios = []scenario{
	{name: "watch delayed by a second"},
	{name: "the create's answer lost", lose: true},
	{name: "child deleted by a third party", thirdParty: true},
	{name: "watch cut, then a new list", cut: true},
	{name: "created and deleted inside one gap", cut: true, thirdParty: true},
	{name: "through an unstructured client", untyped: true},
	{name: "deleted by name on a lagging cache", byName: true},
}

// outcome is what came of all seeds.
type outcome struct {
	wrong   int           // seeds with two children at once, or with one left over
	blocked int           // seeds in which a read ran into its deadline
	longest time.Duration // that a read took
}

func (o outcome) String() string {
	if o.wrong == 0 && o.blocked == 0 {
		return "right"
	}
	var parts []string
	if o.wrong > 0 {
		parts = append(parts, fmt.Sprintf("wrong in %d of %d", o.wrong, seeds))
	}
	if o.blocked > 0 {
		parts = append(parts, fmt.Sprintf("blocked in %d", o.blocked))
	}
	return strings.Join(parts, ", ")
}

// TestScenarios runs every scenario for every subject, prints the table, and pins which subject passes which one.
func TestScenarios(t *testing.T) {
	right := map[string]string{ // by subject, a mark for each scenario: r right, w wrong, b right or wrong but blocked
		"client-go listers":             "wwwwwwr",
		"controller-runtime":            "wwwwwwr",
		"controller-runtime, option on": "rwrrbww",
		"flyball":                       "rrrrrrr",
	}
	table := "| scenario |"
	for _, m := range makers {
		table += " " + m.name + " |"
	}
	table += "\n|---" + strings.Repeat("|---", len(makers)) + "|\n"
	for i, s := range scenarios {
		table += "| " + s.name + " |"
		for _, m := range makers {
			var o outcome
			for seed := range seeds {
				synctest.Test(t, func(t *testing.T) { (&trial{t: t, scenario: s, seed: uint64(seed)}).run(m.make, &o) })
			}
			table += " " + o.String() + " |"
			mark := "r"
			if o.blocked > 0 {
				mark = "b"
			} else if o.wrong > 0 {
				mark = "w"
			}
			if want := right[m.name][i : i+1]; mark != want {
				t.Errorf("%s: %s: %s, want %s", s.name, m.name, o, want)
			}
		}
		table += "\n"
	}
	t.Log("\n" + table)
}

// trial is one seed of one scenario.
type trial struct {
	t *testing.T
	scenario
	seed uint64

	mu     sync.Mutex
	rand   *rand.Rand
	isCut  bool
	lost   bool
	living int
	most   int
}

func (r *trial) between(least, most time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return least + time.Duration(r.rand.Int64N(int64(most-least)))
}

func (r *trial) gate() gate.Gate {
	return gate.Funcs{
		OnFrame: func(ctx context.Context, _ *gate.Request, _ gate.Frame) gate.Verdict {
			r.mu.Lock()
			cut := r.isCut
			r.mu.Unlock()
			if cut {
				return gate.Verdict{Action: gate.Close}
			}
			select {
			case <-time.After(r.between(500*time.Millisecond, 1500*time.Millisecond)):
			case <-ctx.Done():
			}
			return gate.Verdict{}
		},
		OnAnswer: func(_ context.Context, q *gate.Request, a gate.Answer) gate.Verdict {
			time.Sleep(r.between(time.Millisecond, 10*time.Millisecond))
			r.mu.Lock()
			defer r.mu.Unlock()
			if a.Code >= 300 || q.Resource != "secrets" {
				return gate.Verdict{}
			}
			switch q.Verb {
			case "create":
				r.living++
				r.most = max(r.most, r.living)
				if r.lose && !r.lost {
					r.lost = true
					return gate.Verdict{Action: gate.Drop}
				}
			case "delete":
				r.living--
			}
			return gate.Verdict{}
		},
	}
}

func (r *trial) run(make maker, o *outcome) {
	r.rand = rand.New(rand.NewPCG(r.seed, 7))
	api, err := localapi.New(localapi.Options{Gate: r.gate(), Audit: &audit.Log{}, Rand: rand.NewPCG(r.seed, 8)})
	if err != nil {
		r.t.Fatal(err)
	}
	defer api.Close()
	ctx, stop := context.WithCancel(klog.NewContext(r.t.Context(), klog.Logger{}))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	s := make(r.t, ctx, &wg, api.RESTConfig(), r.untyped)
	synctest.Wait()
	if r.byName {
		r.deleteByName(ctx, s, o)
		return
	}
	wg.Go(func() { r.disturb(ctx, api) })
	blocked := r.reconcile(ctx, s, o, time.Now().Add(2*time.Minute))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most > 1 || r.living != 1 {
		o.wrong++
	}
	if blocked {
		o.blocked++
	}
}

// reconcile does what a reconciler that is triggered all the time would.
func (r *trial) reconcile(ctx context.Context, s subject, o *outcome, end time.Time) (blocked bool) {
	for time.Now().Before(end) {
		time.Sleep(r.between(time.Millisecond, 200*time.Millisecond))
		start := time.Now()
		one, cancel := context.WithTimeout(ctx, patience)
		n, err := s.children(one)
		took := time.Since(start)
		o.longest = max(o.longest, took)
		blocked = blocked || took >= patience
		if err == nil && n == 0 {
			_ = s.create(one, "")
		}
		cancel()
	}
	return blocked
}

// disturb is what others do.
func (r *trial) disturb(ctx context.Context, api *localapi.Server) {
	time.Sleep(r.between(0, 300*time.Millisecond))
	r.setCut(r.cut)
	them := kubernetes.NewForConfigOrDie(api.RESTConfig()).CoreV1().Secrets(namespace)
	for r.thirdParty {
		list, err := them.List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		if len(list.Items) > 0 {
			_ = them.Delete(ctx, list.Items[0].Name, metav1.DeleteOptions{})
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if r.cut {
		_ = api.Compact(ctx)
		time.Sleep(r.between(time.Second, 3*time.Second))
		r.setCut(false)
	}
}

func (r *trial) setCut(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = cut
}

// deleteByName deletes what was created just before, by its name, and treats NotFound as done, as everybody does.
func (r *trial) deleteByName(ctx context.Context, s subject, o *outcome) {
	one, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.create(one, "child"); err != nil {
		r.t.Fatal(err)
	}
	_ = s.remove(one, "child")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.living != 0 {
		o.wrong++
	}
}
