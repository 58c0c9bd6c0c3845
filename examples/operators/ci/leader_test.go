package main

import (
	"fmt"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/internal/kit"
)

// candidate has the program wait for a lease, which nobody loses because the machine has too much to do.
var candidate = []string{
	"--leader-elect=true", "--leader-elect-lease-duration=90s",
	"--leader-elect-renew-deadline=60s", "--leader-elect-retry-period=1s",
}

func (w *programs) lease() *coordinationv1.Lease {
	w.Helper()
	lease := &coordinationv1.Lease{}
	w.Must(
		client.IgnoreNotFound(w.Get(w.Ctx, client.ObjectKey{Namespace: "ci", Name: "ci-controllers"}, lease)),
	)
	return lease
}

// holder is who has the lease; empty if nobody has.
func (w *programs) holder() string {
	w.Helper()
	return ptr.Deref(w.lease().Spec.HolderIdentity, "")
}

// The leader of two processes is killed with kill -9, while it waits for what it has asked the build cluster for. The
// other one asks the build cluster for nothing as long as the lease has not run out. Then it has the build cluster's
// caches and controllers, and goes on where the dead one stopped: nothing is made twice, and nothing taken away
// twice.
func TestLeaderProcessIsKilled(t *testing.T) {
	kit.Guard(t)
	t.Parallel()
	w := newPrograms(t)
	args := append(Args(w.stage.Dir, process.Distributor, process.Ephemeral, process.Cleaner), candidate...)
	leader := w.spawn(first, args...)
	w.Until("the first one leads", func() bool { return w.holder() != "" })
	dead := w.holder()
	standby := w.spawn(second, args...)
	asked := func() int { return len(w.requests(second, Hub)) }
	w.Until("the second one watches the hub", func() bool { return asked() > 0 })

	ec := w.ask()
	w.Until("an import is asked for", func() bool { return len(w.imports()) == 1 })
	w.Until("there is a job", func() bool {
		w.Must(w.Get(w.Ctx, client.ObjectKeyFromObject(ec), ec))
		return ec.Status.ProwJobID != ""
	})
	w.Must(leader.Process.Kill())
	_ = leader.Wait() // which says that it was killed

	w.before()
	standIns := Options(w.stage.Dir)
	standIns.Controllers = []string{process.Importer, process.Runner}
	stopStandIns := w.start(standIns)
	w.Until("the import is answered, while nobody leads", func() bool { return len(w.imports()[0].Status.Images) > 0 })
	looks := asked()
	w.Until("the second one looks at the lease, again and again", func() bool { return asked() >= looks+3 })
	if n := len(w.requests(second, Build01)); n != 0 || w.holder() != dead {
		t.Errorf("%s holds the lease, and the second one has asked the build cluster for %d things", w.holder(), n)
	}
	lease := w.lease()
	lease.Spec.LeaseDurationSeconds = ptr.To[int32](1) // for nobody waits a minute and a half in a test
	w.Must(w.Update(w.Ctx, lease))
	w.Until("the second one leads", func() bool { return w.holder() != dead })

	w.Until("the answered import is taken away", func() bool { return len(w.imports()) == 0 })
	w.Until("the cluster is ready", func() bool {
		w.Must(w.Get(w.Ctx, client.ObjectKeyFromObject(ec), ec))
		return ec.Status.Phase == api.Ready
	})
	w.Until("the old tag import of the build cluster is deleted", func() bool {
		return apierrors.IsNotFound(
			w.stage.Build.Get(w.Ctx, client.ObjectKey{Namespace: "ci", Name: "old"}, &api.TestImageStreamTagImport{}),
		)
	})
	stopStandIns()
	w.Must(standby.Process.Kill())
	_ = standby.Wait()
	w.wantOnce()
}

// ask has an image come to the hub that tests begin with, and asks for a cluster.
func (w *programs) ask() *api.EphemeralCluster {
	w.Helper()
	stream := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "ocp", Name: "4.21"}}
	w.Must(w.Create(w.Ctx, stream))
	stream.Point("cli", api.TagEvent{Created: metav1.Now(), Image: "sha256:1"})
	w.Must(w.Status().Update(w.Ctx, stream))
	ec := &api.EphemeralCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ephemeral-cluster", Name: "inherited"}}
	ec.Annotations = map[string]string{api.KonfluxClusterAnnotation: "konflux-1", api.KonfluxTenantAnnotation: "team-a"}
	ec.Spec.CIOperator.Releases = map[string]runtime.RawExtension{"latest": {Raw: []byte("{}")}}
	ec.Spec.CIOperator.Test = api.TestSpec{Workflow: "w", ClusterProfile: "aws"}
	w.Must(w.Create(w.Ctx, ec))
	return ec
}

// imports are those of the build cluster.
func (w *programs) imports() []api.ImageStreamImport {
	w.Helper()
	var list api.ImageStreamImportList
	w.Must(w.stage.Build.List(w.Ctx, &list))
	return list.Items
}

// wantOnce says that the processes made everything once, and took it away once, and that both did something in the
// build cluster.
func (w *programs) wantOnce() {
	w.Helper()
	times, by := map[string]int{}, map[string]int{}
	for cluster, server := range w.servers {
		for _, e := range server.Audit().Writes() {
			if e.User != first && e.User != second || e.Code >= 300 || e.Verb != "create" && e.Verb != "delete" {
				continue
			}
			times[fmt.Sprintf("%s in %s: %s %s/%s", e.Verb, cluster, e.Resource, e.Namespace, e.Name)]++
			if cluster == Build01 {
				by[e.User]++
			}
		}
	}
	for what, n := range times {
		if n != 1 {
			w.Errorf("%d times %s", n, what)
		}
	}
	if by[first] == 0 || by[second] == 0 {
		w.Errorf("of what was made in the build cluster: %v", by)
	}
	secret := &corev1.Secret{}
	w.Must(
		w.Get(w.Ctx, client.ObjectKey{Namespace: "ephemeral-cluster", Name: "inherited-credentials"}, secret),
	)
}
