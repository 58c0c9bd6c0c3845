package providers

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// The control planes are behind a path of the Projects' API server. They are reached with the same config, but their
// resource versions are unrelated. So RunUntilIdle must not wait until writes to them appear among the Projects.
func TestProjectsUntilIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{
			t: t, ctx: klog.NewContext(t.Context(), klog.Logger{}),
			planes: &planes{servers: map[string]*localapi.Server{}},
		}
		api := localapi.NewTest(t)
		var err error
		f.core, err = client.New(api.RESTConfig(), client.Options{})
		f.must(err)
		f.must(f.core.Create(f.ctx, definition(External(), "projects", "Cluster")))
		config := api.RESTConfig()
		config.Wrap(f.planes.wrap)
		local, err := manager.New(config, manager.Options{})
		f.must(err)
		provider, err := NewProjects(local, ProjectOptions{})
		f.must(err)
		f.Manager, err = multicluster.New(local, multicluster.Options{Providers: []multicluster.Provider{provider}})
		f.must(err)
		f.must(
			multicluster.ControllerManagedBy(f.Manager).For(&corev1.ConfigMap{}).Complete(
				reconcile.Func[multicluster.Request](f.reconcile),
			),
		)
		var names []string
		for i := range 100 { // Enough to put the control plane's versions ahead.
			names = append(names, fmt.Sprint("x-", i))
		}
		plane := f.serve("a", names...)
		f.announce("a", "True")
		ctx, cancel := context.WithTimeout(f.ctx, time.Minute)
		defer cancel()
		summary, err := local.RunUntilIdle(ctx, manager.IdleOptions{})
		if err != nil || summary.Processed < 100 {
			t.Errorf("%+v, %v", summary, err)
		}
		for _, name := range names {
			if got := held(f, plane, name); got != "a" {
				t.Errorf("the config map %s says %q", name, got)
			}
		}
		f.must(plane.Close())
	})
}
