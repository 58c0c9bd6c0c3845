package patterns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

const proving = "a-proving"

// newManager returns the program that publishes sites with do.
func newManager(config *rest.Config, do func(context.Context, client.Client, *Site) error) (ctrl.Manager, error) {
	m, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme(), GracefulTimeout: -1})
	if err != nil {
		return nil, err
	}
	return m, forSites(publishing(do))(m)
}

// killedAfter runs a program on a server with one site, kills it after its n-th write, and starts it again. It returns
// that write, "" if there were fewer, and the number of pages in the end.
func killedAfter(t *testing.T, n int, do func(context.Context, client.Client, *Site) error) (write string, pages int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, newSite())
		var writes atomic.Int64
		var dead atomic.Bool
		run, kill := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		defer kill()
		b.Intercept(localapi.Rule{Applied: true, Do: func(_ context.Context, r *gate.Request) gate.Verdict {
			switch {
			case dead.Load():
				return gate.Verdict{Action: gate.Drop}
			case r.Mutates() && writes.Add(1) == int64(n):
				write = r.Verb + " " + r.Resource
				dead.Store(true)
				kill()
				return gate.Verdict{Action: gate.Drop} // The process does not get the answer.
			}
			return gate.Verdict{}
		}})
		life := func(ctx context.Context) {
			m, err := newManager(b.RESTConfig(), do)
			b.must(err)
			ctx, stop := context.WithTimeout(ctx, 10*time.Minute)
			defer stop()
			// It is cut short, as a process that is killed.
			if err := m.Run(ctx); err != nil && !dead.Load() && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		life(run)
		dead.Store(false)
		life(klog.NewContext(t.Context(), klog.Logger{}))
		var list corev1.ConfigMapList
		b.must(b.List(t.Context(), &list, client.MatchingLabels{"site": "shop"}, client.Live))
		pages = len(list.Items)
	})
	return write, pages
}

// TestProvingByHand kills both forms of a program after each of their writes.
func TestProvingByHand(t *testing.T) {
	var text strings.Builder
	worst := map[string]int{}
	for _, p := range []struct {
		name string
		do   func(context.Context, client.Client, *Site) error
	}{{"creates, and notes it", publishOnce}, {"makes it so", publish}} {
		fmt.Fprintln(&text, p.name)
		for n := 1; ; n++ {
			write, pages := killedAfter(t, n, p.do)
			if write == "" {
				fmt.Fprintf(&text, "  never killed: %d write(s), %d page(s)\n", n-1, pages)
				break
			}
			worst[p.name] = max(worst[p.name], pages)
			fmt.Fprintf(&text, "  killed after write %d, %-18s %d page(s)\n", n, write+":", pages)
		}
	}
	if worst["creates, and notes it"] != 2 || worst["makes it so"] != 1 {
		t.Errorf("at most %v pages", worst)
	}
	book.Trace(t, proving, text.String())
}

// scenario is a site that is created and changed.
func scenario(do func(context.Context, client.Client, *Site) error) simtest.Scenario {
	return simtest.Scenario{
		Scheme:  scheme(),
		Objects: []runtime.Object{definition()},
		Build:   func(e *simtest.Env) (simtest.Program, error) { return newManager(e.Config(), do) },
		Script: func(u *simtest.User) {
			u.Create(newSite())
			u.Settle()
			simtest.Update(u, newSite(), func(s *Site) { s.Spec.Text = "hello again" })
			u.Settle()
		},
	}
}

// TestProvingFind: simtest finds the bug.
func TestProvingFind(t *testing.T) {
	finding, _ := simtest.Find(t, scenario(publishOnce), simtest.Options{Budget: time.Minute, Runs: 50})
	if finding == nil {
		t.Fatal("the bug is not found")
	}
	book.Trace(t, proving, finding.String())
}

// TestProvingIdempotent: simtest finds nothing in the other form.
func TestProvingIdempotent(t *testing.T) {
	finding, report := simtest.Find(t, scenario(publish), simtest.Options{Budget: time.Minute, Runs: 100})
	if finding != nil {
		t.Fatal(finding)
	}
	book.Trace(t, proving, fmt.Sprintf("%d runs, nothing found", report.Runs))
}
