package multicluster_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// newLaggingServer returns a server of config maps whose watches are slow.
func newLaggingServer(t *testing.T, lag time.Duration, names ...string) *localapi.Server {
	t.Helper()
	s, err := localapi.New(localapi.Options{
		NoKubernetesService: true,
		Gate: gate.Funcs{OnFrame: func(ctx context.Context, _ *gate.Request, _ gate.Frame) gate.Verdict {
			select {
			case <-time.After(lag):
			case <-ctx.Done():
			}
			return gate.Verdict{}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for _, name := range names {
		if err := s.Seed(t.Context(), configMap(name)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// stepWriter returns a reconciler that writes the number of its call, 1 and then 2, into the config map. Later calls do
// nothing. With read, it reads the config map first.
func stepWriter(read bool) reconcile.Func[multicluster.Request] {
	seen := map[string]int{}
	return func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
		c, err := clusterOf(ctx)
		if err != nil {
			return reconcile.Result{}, err
		}
		cm := configMap(r.Name)
		if seen[r.String()]++; seen[r.String()] > 2 {
			return reconcile.Result{}, nil
		}
		if read {
			if err := c.Get(ctx, r.NamespacedName, cm); err != nil {
				return reconcile.Result{}, err
			}
		}
		patch := fmt.Appendf(nil, `{"data":{"step":"%d"}}`, seen[r.String()])
		return reconcile.Result{}, c.Patch(ctx, cm, client.RawPatch("application/merge-patch+json", patch))
	}
}

// RunUntilIdle waits for the event of a write to a cluster, however late it comes.
func TestRunUntilIdleIsPatientWithASlowWatch(t *testing.T) {
	for name, read := range map[string]bool{"read": true, "unread": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow, quick := newLaggingServer(t, 2*time.Second, "a"), newLaggingServer(t, 0, "a")
				clusters := announced{
					{Name: "slow", Config: slow.RESTConfig()},
					{Name: "quick", Config: quick.RESTConfig()},
				}
				summary := runUntilIdle(t, clusters, stepWriter(read))
				if summary.Duration < 4*time.Second || summary.Duration >= 10*time.Second {
					t.Errorf("it took %v", summary.Duration)
				}
				for name, s := range map[string]*localapi.Server{"slow": slow, "quick": quick} {
					if got := readStep(t, s); got != "2" {
						t.Errorf("%s is at step %q", name, got)
					}
				}
			})
		})
	}
}

// RunUntilIdle does not wait for a cluster that cannot be reached.
func TestRunUntilIdleIgnoresUnreachableClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.create(t, "a")
		step := stepWriter(false)
		summary := runUntilIdle(t, announced{{Name: "eu", Config: s.RESTConfig()}},
			func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
				result, err := step(ctx, r)
				s.setVerdict(dropConnection) // The watch ends before it shows the write, or just then.
				return result, err
			})
		if summary.Duration > time.Minute {
			t.Errorf("it took %v", summary.Duration)
		}
	})
}

// runUntilIdle runs a fleet with a controller of config maps until it is idle.
func runUntilIdle(t *testing.T, clusters announced, r reconcile.Func[multicluster.Request]) manager.Summary {
	t.Helper()
	local, err := manager.New(newSite(t).RESTConfig(), manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := multicluster.New(local, multicluster.Options{Providers: []multicluster.Provider{clusters}})
	if err != nil {
		t.Fatal(err)
	}
	if err := multicluster.ControllerManagedBy(fleet).For(&corev1.ConfigMap{}).WithOptions(
		reconcile.Options[multicluster.Request]{Workers: 1},
	).Complete(r); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	summary, err := local.RunUntilIdle(ctx, manager.IdleOptions{})
	if err != nil {
		t.Error(err)
	}
	return summary
}

// readStep returns the number that stepWriter has written.
func readStep(t *testing.T, s *localapi.Server) string {
	t.Helper()
	c, err := client.New(s.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cm := configMap("a")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
		t.Fatal(err)
	}
	return cm.Data["step"]
}
