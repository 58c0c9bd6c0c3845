package fleet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/citest"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// add puts a controller into the cluster's manager that watches ImageStreams.
func add(w *citest.World, c *fleet.Cluster) {
	streams, err := informer.For[*api.ImageStream](c.Manager.Informers())
	w.Must(err)
	seen := reconcile.New("seen", reconcile.Func[reconcile.Request](func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	}), reconcile.Options[reconcile.Request]{})
	w.Must(seen.Watch(reconcile.Kind(streams, reconcile.EnqueueObject[*api.ImageStream]())))
	w.Must(c.Manager.Add(seen))
}

// Two processes, two clusters: the one that does not lead asks nothing of the build cluster until the leader is gone.
func TestBuildClustersBeginWithTheLease(t *testing.T) {
	citest.In(t, func(w *citest.World) {
		process := func(identity string) *fleet.Fleet {
			configs := w.Configs()
			for name, c := range configs {
				configs[name] = rest.CopyConfig(c)
				configs[name].UserAgent = identity
			}
			f, err := fleet.New(configs, fleet.Options{Hub: citest.Hub, Manager: manager.Options{
				GracefulTimeout: time.Second,
				LeaderElection:  manager.LeaderElection{Enabled: true, Namespace: "ci", Name: "lease", Identity: identity},
			}})
			w.Must(err)
			add(w, f.Builds[0])
			return f
		}
		requests := func(identity string) int {
			return len(w.Clusters[citest.Build01].Audit().Entries(func(e audit.Entry) bool { return strings.HasPrefix(e.UserAgent, identity) }))
		}
		stopFirst := w.Start(process("first").Run)
		time.Sleep(time.Minute)
		stopSecond := w.Start(process("second").Run)
		time.Sleep(10 * time.Minute)
		if requests("first") == 0 || requests("second") != 0 {
			t.Errorf("while the first leads: %d and %d requests", requests("first"), requests("second"))
		}
		stopFirst()
		time.Sleep(time.Minute)
		if requests("second") == 0 {
			t.Error("the second leads and does not look at the build cluster")
		}
		stopSecond()
	}, citest.Hub, citest.Build01)
}

func TestNoHub(t *testing.T) {
	_, err := fleet.New(map[string]*rest.Config{"a": {}}, fleet.Options{Hub: "app.ci"})
	if err == nil || err.Error() != `there is no cluster "app.ci" among ["a"]` {
		t.Error(err)
	}
}
