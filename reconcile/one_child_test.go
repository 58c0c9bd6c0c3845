package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/reconcile"
)

// childRuns is the number of seeds for each variant of TestExactlyOneChild. FLYBALL_CHILD_RUNS overrides it; make
// children sets it to a thousand.
const childRuns = 10

// childVariant describes what goes wrong while the reconciler works.
type childVariant struct {
	name         string
	lose         bool // The response to the first create is lost.
	fail         bool // The first create takes effect, but the response is an internal error.
	thirdParty   bool // Another client deletes the first child.
	cut          bool // Watches end at each frame for a while, and the history is compacted.
	unstructured bool
	listers      bool // It reads the cache through listers, with Options.Ready.
}

var childVariants = []childVariant{
	{name: "watch delayed"},
	{name: "answer lost", lose: true},
	{name: "answered with an error although applied", fail: true},
	{name: "child deleted by a third party", thirdParty: true},
	{name: "watch cut and listed again", cut: true},
	{name: "created and deleted inside one gap", cut: true, thirdParty: true},
	{name: "unstructured", unstructured: true},
	{name: "answer lost, watch cut", lose: true, cut: true},
	{name: "listers behind the gate", listers: true},
	{name: "listers behind the gate, answer lost", listers: true, lose: true},
	{name: "listers behind the gate, created and deleted inside one gap", listers: true, cut: true, thirdParty: true},
}

// TestExactlyOneChild: a reconciler creates a child with a generated name when its cached list has none. It is
// triggered all the time, and the watch is about a second behind. There is never more than one child, and one at the
// end.
func TestExactlyOneChild(t *testing.T) {
	runs := childRuns
	if n, err := strconv.Atoi(os.Getenv("FLYBALL_CHILD_RUNS")); err == nil {
		runs = n
	}
	for _, v := range childVariants {
		t.Run(v.name, func(t *testing.T) {
			for seed := range runs {
				synctest.Test(t, func(t *testing.T) { (&childRun{t: t, variant: v, seed: uint64(seed)}).run() })
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// childRun is a run of one variant with one seed.
type childRun struct {
	t       *testing.T
	variant childVariant
	seed    uint64

	mu   sync.Mutex
	rand *rand.Rand
	cut  bool // Watches end.
	lost int  // creates whose response was lost
}

// between returns a random duration.
func (r *childRun) between(least, most time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return least + time.Duration(r.rand.Int64N(int64(most-least)))
}

func (r *childRun) gate() gate.Gate {
	return gate.Funcs{
		OnFrame: func(ctx context.Context, _ *gate.Request, _ gate.Frame) gate.Verdict {
			r.mu.Lock()
			cut := r.cut
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
		OnAnswer: func(_ context.Context, q *gate.Request, _ gate.Answer) gate.Verdict {
			time.Sleep(r.between(time.Millisecond, 30*time.Millisecond))
			r.mu.Lock()
			defer r.mu.Unlock()
			if (r.variant.lose || r.variant.fail) && q.Verb == "create" && q.Resource == "secrets" && r.lost == 0 {
				r.lost++
				if r.variant.fail {
					return gate.FailWith(apierrors.NewInternalError(errors.New("after it was applied")))
				}
				return gate.Verdict{Action: gate.Drop}
			}
			return gate.Verdict{}
		},
	}
}

func (r *childRun) run() {
	r.rand = rand.New(rand.NewPCG(r.seed, 1))
	api, err := localapi.New(localapi.Options{Gate: r.gate(), Audit: &audit.Log{}, Rand: rand.NewPCG(r.seed, 2)})
	if err != nil {
		r.t.Fatal(err)
	}
	defer api.Close()
	if err := api.Seed(r.t.Context(), configMap("owner")); err != nil {
		r.t.Fatal(err)
	}
	ctx := klog.NewContext(r.t.Context(), klog.Logger{})
	runProcess(r.t, ctx, api, r.reconciler, func(ctx context.Context, p *process) {
		var disturber sync.WaitGroup
		disturber.Go(func() { r.disturb(ctx, p) })
		for end := time.Now().Add(r.between(3*time.Second, 6*time.Second)); time.Now().Before(end); {
			time.Sleep(r.between(time.Millisecond, 200*time.Millisecond))
			p.controller.Enqueue(reconcile.RequestFor(configMap("owner")))
		}
		disturber.Wait()
		time.Sleep(3 * time.Minute)
	})
	r.judge(api)
}

// disturb does what other clients do meanwhile.
func (r *childRun) disturb(ctx context.Context, p *process) {
	them, err := client.New(p.api.RESTConfig(), client.Options{})
	if err != nil {
		r.t.Error(err)
		return
	}
	time.Sleep(r.between(0, 500*time.Millisecond))
	r.setCut(r.variant.cut)
	if r.variant.thirdParty {
		for { // Delete the first child as soon as there is one.
			var children corev1.SecretList
			if err := them.List(ctx, &children); err != nil {
				r.t.Error(err)
				return
			}
			if len(children.Items) > 0 {
				if err := them.Delete(ctx, &children.Items[0]); err != nil {
					r.t.Error(err)
				}
				break
			}
			time.Sleep(r.between(time.Millisecond, 100*time.Millisecond))
		}
	}
	if r.variant.cut {
		if err := p.api.Compact(ctx); err != nil {
			r.t.Error(err)
		}
		time.Sleep(r.between(0, 3*time.Second))
	}
	r.setCut(false)
}

func (r *childRun) setCut(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
}

// reconciler returns the reconciler under test.
func (r *childRun) reconciler(p *process) (reconcile.Reconciler[reconcile.Request],
	reconcile.Options[reconcile.Request],
) {
	return reconcile.Func[reconcile.Request](func(ctx context.Context,
		key reconcile.Request,
	) (reconcile.Result, error) {
		if key.Name != "owner" {
			return reconcile.Result{}, nil
		}
		list, child := client.ObjectList(&corev1.SecretList{}), client.Object(&corev1.Secret{})
		if r.variant.unstructured {
			kind := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
			list, child = &unstructured.UnstructuredList{}, &unstructured.Unstructured{}
			child.GetObjectKind().SetGroupVersionKind(kind)
			list.GetObjectKind().SetGroupVersionKind(kind.GroupVersion().WithKind("SecretList"))
		}
		mine := map[string]string{"of": key.Name}
		if err := p.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels(mine),
			client.ReadOptions{Lagging: r.variant.listers}); err != nil {
			return reconcile.Result{}, err
		}
		if count(list) > 0 {
			return reconcile.Result{}, nil
		}
		child.SetNamespace(key.Namespace)
		child.SetGenerateName("child-")
		child.SetLabels(mine)
		if err := p.Create(ctx, child); err != nil {
			return reconcile.Result{}, fmt.Errorf("create child: %w", err)
		}
		return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}), r.options(p)
}

func (r *childRun) options(p *process) reconcile.Options[reconcile.Request] {
	o := reconcile.Options[reconcile.Request]{Workers: 2}
	if r.variant.listers {
		o.Ready = func(ctx context.Context, _ reconcile.Request) error { return p.Ready(ctx, client.OwnerFrom(ctx)) }
	}
	return o
}

func count(list client.ObjectList) int {
	if u, is := list.(*unstructured.UnstructuredList); is {
		return len(u.Items)
	}
	return len(list.(*corev1.SecretList).Items)
}

// judge counts in the server's log how many children existed at once, and how many exist at the end.
func (r *childRun) judge(api *localapi.Server) {
	living, most := 0, 0
	for _, e := range api.Audit().Entries(func(e audit.Entry) bool { return e.Resource == "secrets" && e.Mutates() }) {
		switch e.Verb {
		case "create":
			living++
		case "delete":
			living--
		}
		most = max(most, living)
	}
	if living != 1 || most != 1 {
		r.t.Errorf("%d children at the end, %d at once:\n%v", living, most, api.Audit().Writes())
	}
}
