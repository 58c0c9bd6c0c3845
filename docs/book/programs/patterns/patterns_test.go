package patterns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

func pageNamed(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{"site": "shop"},
	}}
}

// TestPatternLevel: a count of events is wrong after a restart.
func TestPatternLevel(t *testing.T) {
	counts := [2]int{}
	text := both(t, [2]string{"counts events", "counts pages"}, func(t *testing.T, level bool) *bench {
		b := newBench(t, newSite(), pageNamed("home"), pageNamed("cart"))
		for _, what := range []string{"it starts", "it starts again"} {
			build := func(m ctrl.Manager) error {
				toSite := func(context.Context, client.Object) []ctrl.Request {
					return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: "default", Name: "shop"}}}
				}
				return ctrl.NewControllerManagedBy(m).For(&Site{}).
					Watches(&corev1.ConfigMap{}, handler.EnqueueMapped(toSite), builder.WatchOptions{}).
					Complete(&levelCounter{m.GetClient()})
			}
			if !level {
				build = func(m ctrl.Manager) error {
					c := &eventCounter{m.GetClient(), client.ObjectKey{Namespace: "default", Name: "shop"}}
					added := ctrl.ReconcilerFunc(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
						if r.Name != "home" && r.Name != "cart" {
							return ctrl.Result{}, nil
						}
						return ctrl.Result{}, c.added(ctx)
					})
					return ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(added)
				}
			}
			stop := b.run(build)
			time.Sleep(time.Second)
			b.note("%s; the site has 2 pages, the status says %d", what, b.site().Status.Pages)
			stop()
		}
		counts[map[bool]int{true: 1}[level]] = b.site().Status.Pages
		return b
	})
	if counts != [2]int{4, 2} {
		t.Errorf("counts %v", counts)
	}
	book.Trace(t, page, text)
}

// publishing returns a reconciler that calls do for each site.
func publishing(do func(ctx context.Context, c client.Client, site *Site) error) func(client.Client) ctrl.Reconciler {
	return func(c client.Client) ctrl.Reconciler {
		return ctrl.ReconcilerFunc(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			var site Site
			if err := c.Get(ctx, r.NamespacedName, &site); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			return ctrl.Result{}, do(ctx, c, &site)
		})
	}
}

// TestPatternIdempotent: the second write fails, and the retry makes a second page, or finds the first.
func TestPatternIdempotent(t *testing.T) {
	found := [2]int{}
	text := both(t, [2]string{"creates, and notes it", "makes it so"}, func(t *testing.T, idempotent bool) *bench {
		b := newBench(t)
		b.Intercept(localapi.Rule{
			Verb: "update", Resource: "sites", Nth: 1, Err: apierrors.NewInternalError(errors.New("etcd is full")),
		})
		do := publishOnce
		if idempotent {
			do = publish
		}
		stop := b.run(forSites(publishing(do)))
		b.must(b.Create(t.Context(), newSite()))
		b.note("somebody creates the site; the first update of a site fails")
		time.Sleep(2 * time.Minute)
		var pages corev1.ConfigMapList
		b.must(b.List(t.Context(), &pages, client.MatchingLabels{"site": "shop"}, client.Live))
		b.note("pages: %d", len(pages.Items))
		found[map[bool]int{true: 1}[idempotent]] = len(pages.Items)
		stop()
		return b
	})
	if found != [2]int{2, 1} {
		t.Errorf("pages %v", found)
	}
	book.Trace(t, page, text)
}

// names is a name server in memory.
type names struct {
	mu sync.Mutex
	of map[string]string
}

func (n *names) Set(domain, site string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of[site] = domain
}

func (n *names) Remove(site string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, site)
	return nil
}

func (n *names) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.TrimPrefix(fmt.Sprint(n.of), "map")
}

// TestPatternFinalizer: a site is deleted while the controller is down.
func TestPatternFinalizer(t *testing.T) {
	left := [2]int{}
	text := both(t, [2]string{"without a finalizer", "with one"}, func(t *testing.T, finalizer bool) *bench {
		b, n := newBench(t), &names{of: map[string]string{}}
		build := forSites(func(c client.Client) ctrl.Reconciler {
			if finalizer {
				return &careful{c, n}
			}
			return &forgetful{c, n}
		})
		stop := b.run(build)
		b.must(b.Create(t.Context(), newSite()))
		time.Sleep(time.Second)
		b.note("the name server has %v", n)
		stop()
		b.must(b.Delete(t.Context(), newSite()))
		b.note("the controller is down, and somebody deletes the site")
		time.Sleep(time.Second)
		stop = b.run(build)
		time.Sleep(time.Second)
		err := b.Get(t.Context(), client.ObjectKeyFromObject(newSite()), &Site{}, client.Live)
		b.note("the controller is back; the site is gone: %v, the name server has %v", apierrors.IsNotFound(err), n)
		left[map[bool]int{true: 1}[finalizer]] = len(n.String()) - len("[]")
		stop()
		return b
	})
	if left[0] == 0 || left[1] != 0 {
		t.Errorf("left %v", left)
	}
	book.Trace(t, page, text)
}

// TestPatternOwner: somebody else's object has the name.
func TestPatternOwner(t *testing.T) {
	kept := [2]bool{}
	text := both(t, [2]string{"writes by name", "writes what is its own"}, func(t *testing.T, owned bool) *bench {
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop-page"}}
		theirs.Data = map[string]string{"index.html": "the page of another team"}
		b := newBench(t, theirs)
		do := publish
		if owned {
			do = func(ctx context.Context, c client.Client, site *Site) error {
				err := publishOwned(ctx, c, scheme(), site)
				b.note("reconcile: %v; a retry may help: %v", err, !reconcile.IsTerminal(err))
				return err
			}
		}
		stop := b.run(forSites(publishing(do)))
		b.must(b.Create(t.Context(), newSite()))
		time.Sleep(time.Minute)
		b.must(b.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs, client.Live))
		b.note("shop-page: %q", theirs.Data["index.html"])
		kept[map[bool]int{true: 1}[owned]] = theirs.Data["index.html"] == "the page of another team"
		stop()
		return b
	})
	if kept != [2]bool{false, true} {
		t.Errorf("kept %v", kept)
	}
	book.Trace(t, page, text)
}

// standing is what tools make of a status.
//
// Source: sigs.k8s.io/cli-utils pkg/kstatus/status, generic.go and core.go.
func standing(s *Site) string {
	switch {
	case s.Status.ObservedGeneration != 0 && s.Status.ObservedGeneration != s.Generation:
		return "InProgress"
	case conditions.Is(s.Status.Conditions, conditions.Reconciling, metav1.ConditionTrue):
		return "InProgress"
	case conditions.Is(s.Status.Conditions, conditions.Stalled, metav1.ConditionTrue):
		return "Failed"
	case conditions.Is(s.Status.Conditions, conditions.Ready, metav1.ConditionTrue):
		return "Current"
	}
	return "InProgress"
}

// TestPatternStatus: a tool waits for a site after a change.
func TestPatternStatus(t *testing.T) {
	early := [2]string{}
	text := both(t, [2]string{"Ready alone", "Ready of a generation"}, func(t *testing.T, observes bool) *bench {
		b := newBench(t)
		stop := b.run(forSites(func(c client.Client) ctrl.Reconciler {
			if observes {
				return &observing{c}
			}
			return &timeless{c}
		}))
		b.must(b.Create(t.Context(), newSite()))
		time.Sleep(10 * time.Second)
		b.note("the site is %s", standing(b.site()))
		changed := b.site()
		changed.Spec.Text = "hello again"
		b.must(b.Update(t.Context(), changed))
		b.note("somebody changes the text; the upload takes 5s")
		time.Sleep(time.Second)
		early[map[bool]int{true: 1}[observes]] = standing(b.site())
		b.note("the site is %s", standing(b.site()))
		time.Sleep(10 * time.Second)
		b.note("the site is %s", standing(b.site()))
		stop()
		return b
	})
	if early != [2]string{"Current", "InProgress"} {
		t.Errorf("one second after the change: %v", early)
	}
	book.Trace(t, page, text)
}

// TestPatternTerminal: a user writes nonsense, and corrects it after an hour.
func TestPatternTerminal(t *testing.T) {
	runs := [2]int{}
	titles := [2]string{"an error", "a terminal error, and a condition"}
	text := both(t, titles, func(t *testing.T, terminal bool) *bench {
		b := newBench(t)
		var count func() int
		stop := b.run(forSites(func(c client.Client) ctrl.Reconciler {
			if terminal {
				r := &resigned{Client: c}
				count = func() int { return r.runs }
				return r
			}
			r := &stubborn{Client: c}
			count = func() int { return r.runs }
			return r
		}))
		site := newSite()
		site.Spec.Domain = "shop"
		b.must(b.Create(t.Context(), site))
		time.Sleep(time.Hour)
		synctest.Wait()
		said := ""
		if c := conditions.Get(b.site().Status.Conditions, conditions.Stalled); c != nil {
			said = fmt.Sprintf("; Stalled is %s: %s", c.Status, c.Message)
		}
		runs[map[bool]int{true: 1}[terminal]] = count()
		b.note("runs: %d%s", count(), said)
		site = b.site()
		site.Spec.Domain = "shop.example.com"
		b.must(b.Update(t.Context(), site))
		time.Sleep(time.Second)
		synctest.Wait()
		if c := conditions.Get(b.site().Status.Conditions, conditions.Ready); c != nil {
			b.note("the user corrects it; Ready is %s", c.Status)
		}
		stop()
		return b
	})
	if runs[0] < 10 || runs[1] > 2 {
		t.Errorf("runs %v", runs)
	}
	book.Trace(t, page, text)
}

// TestPatternRequeue: a certificate comes after ten minutes, and is renewed after a day.
func TestPatternRequeue(t *testing.T) {
	table := "| | runs in a day | the certificate is seen after |\n|---|---|---|\n"
	runs := []int{}
	for _, name := range []string{"`RequeueAfter: 10 * time.Second`", "a watch, and `RequeueAfter` until the renewal"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			var c *counted
			build := func(m ctrl.Manager) error {
				if len(runs) == 0 {
					r := &asking{counted{Client: m.GetClient()}}
					c = &r.counted
					return ctrl.NewControllerManagedBy(m).For(&Site{}).Complete(r)
				}
				r := &told{counted{Client: m.GetClient()}}
				c = &r.counted
				return r.setUp(m)
			}
			stop := b.run(build)
			b.must(b.Create(t.Context(), newSite()))
			time.Sleep(10*time.Minute + 3*time.Second)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop-cert"}}
			secret.Annotations = map[string]string{"ends": time.Now().Add(20 * time.Hour).Format(time.RFC3339)}
			created := time.Now()
			b.must(b.Create(t.Context(), secret))
			time.Sleep(24 * time.Hour)
			synctest.Wait()
			table += fmt.Sprintf("| %s | %d | %v |\n", name, c.runs, c.seen.Sub(created))
			runs = append(runs, c.runs)
			stop()
		})
	}
	if runs[0] < 5000 || runs[1] > 20 {
		t.Errorf("runs %v", runs)
	}
	book.Block(t, page, table)
}

// TestPatternQuiet: a reconcile that writes in each run triggers itself.
func TestPatternQuiet(t *testing.T) {
	writes := [2]int{}
	text := both(t, [2]string{"writes in each run", "writes what differs"}, func(t *testing.T, quiet bool) *bench {
		b := newBench(t)
		b.Intercept(localapi.Rule{Resource: "sites", Subresource: "status", Do: func(context.Context,
			*gate.Request,
		) gate.Verdict {
			time.Sleep(10 * time.Millisecond)
			return gate.Verdict{}
		}})
		stop := b.run(forSites(func(c client.Client) ctrl.Reconciler {
			if quiet {
				return &levelCounter{c}
			}
			return &restless{c}
		}))
		b.must(b.Create(t.Context(), newSite()))
		time.Sleep(time.Second + 5*time.Millisecond) // A write is at no moment at which they are counted.
		before := len(b.Audit().Writes())
		time.Sleep(time.Second)
		n := len(b.Audit().Writes()) - before
		b.note("writes in the last second, in which nobody changed anything: %d", n)
		writes[map[bool]int{true: 1}[quiet]] = n
		stop()
		return b
	})
	if writes[0] < 50 || writes[1] != 0 {
		t.Errorf("writes %v", writes)
	}
	book.Trace(t, page, text)
}

// TestPatternNoNews: a reconciler that makes things so writes nothing when nothing has changed.
func TestPatternNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		stop := b.run(forSites(publishing(publish)))
		b.must(b.Create(t.Context(), newSite()))
		time.Sleep(time.Second)
		stop()
		if len(b.Audit().Writes()) < 2 {
			t.Fatal("it published nothing")
		}
		b.AssertNoWrites(func() {
			stop := b.run(forSites(publishing(publish)))
			time.Sleep(time.Second)
			stop()
		})
	})
}
