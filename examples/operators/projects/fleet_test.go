package main

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/multicluster"
)

// ready: a Project whose control plane does not answer yet is not in the fleet. When it answers, it joins, and is found
// at its path.
func ready(w *World) {
	w.StopHost()
	w.Project("a")
	w.Reason("a", api.ReasonProvisioning)
	w.State("a", multicluster.Waiting)
	w.StartHost()
	p := w.Reason("a", api.ReasonReady)
	w.State("a", multicluster.Live)
	c, err := w.Op.Fleet.GetCluster(w.Ctx, "a")
	w.Must(err)
	const path = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/a/control-plane"
	if got := c.Config().Host; !strings.HasPrefix(got, "http") || !strings.HasSuffix(got, path) {
		w.Errorf("the control plane is at %s, want the path %s", got, path)
	}
	if c.Info().Identity != string(p.UID) {
		w.Errorf("its identity is %s, want the project's UID %s", c.Info().Identity, p.UID)
	}
	plane := &infrastructure.ProjectControlPlane{}
	w.Must(w.Get(w.Ctx, client.ObjectKey{Name: "a"}, plane))
	if plane.Labels[api.ProjectNameLabel] != "a" || plane.Labels[api.ProjectUIDLabel] != string(p.UID) ||
		!metav1.IsControlledBy(plane, p) {
		w.Errorf("the control plane is %+v", plane.ObjectMeta)
	}
	if !controllerutil.ContainsFinalizer(p, api.Finalizer) ||
		conditions.Get(p.Status.Conditions, api.Ready).ObservedGeneration != p.Generation {
		w.Errorf("the project is %+v", p)
	}
}

// foundByControlPlane: inside the cluster that they run in, control planes are found without the Projects.
func foundByControlPlane(w *World) {
	w.Live("a")
	w.Remove("a")
}

// sameNames: objects of one name in three control planes are three requests, and each write goes to where its object
// was read.
func sameNames(w *World) {
	names := []string{"a", "b", "c"}
	w.Live(names...)
	for _, name := range names {
		c := w.In(name)
		w.Must(c.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}))
		w.Must(c.Create(w.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "same"}}))
	}
	for _, name := range names {
		w.Eventually(func() string {
			c, s, n, info := w.In(name), &corev1.Secret{}, &corev1.Namespace{}, &corev1.ConfigMap{}
			w.Must(c.Get(w.Ctx, client.ObjectKey{Namespace: "team", Name: "same"}, s))
			w.Must(c.Get(w.Ctx, client.ObjectKey{Name: "team"}, n))
			w.Must(c.Get(w.Ctx, client.ObjectKey{Namespace: "default", Name: "project-info"}, info))
			if got := []string{
				string(s.Data["project"]), n.Labels[api.ProjectNameLabel],
				info.Data["name"],
			}; !slices.Equal(got, []string{name, name, name}) {
				return fmt.Sprintf("in %s there is written %q", name, got)
			}
			return ""
		})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		if want := "cluster://" + name + "/team/same"; !slices.Contains(w.secrets, want) {
			w.Errorf("the requests were %q; %s is missing", w.secrets, want)
		}
	}
}

// comeAndGo: Projects that come and go leave nothing behind, neither in the process nor in health. FLYBALL_ROUNDS is
// how often.
func comeAndGo(w *World) {
	rounds := 3
	if !w.on.Real {
		rounds = optest.Rounds(w.T, "FLYBALL_ROUNDS", 5)
	}
	round := func() {
		w.Live("a")
		c := w.In("a")
		for i := range 3 {
			w.Must(
				c.Create(w.Ctx,
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("s-", i)}}),
			)
		}
		w.Remove("a")
		time.Sleep(time.Second)
	}
	round()
	before := runtime.NumGoroutine()
	for range rounds {
		round()
	}
	w.Eventually(func() string {
		if after := runtime.NumGoroutine(); after > before {
			return fmt.Sprintf("%d goroutines after %d rounds, %d before", after, rounds, before)
		}
		return ""
	})
	if note := w.Op.Fleet.Note(); strings.Contains(note, "a:") {
		w.Errorf("the fleet notes %q", note)
	}
}

// unreachable: a control plane that does not answer delays no other.
func unreachable(w *World) {
	w.Host.Silence("dead", true)
	w.Project("dead")
	w.Live("a")
	w.Reason("dead", api.ReasonProvisioning)
	// It becomes ready, but does not answer the next operator, so that the fleet cannot add it. The operator before
	// must have stopped by then: it would wait for an answer.
	w.Host.Silence("dead", false)
	w.Reason("dead", api.ReasonReady)
	w.Stop()
	w.Host.Silence("dead", true)
	w.Start()
	w.State("dead", multicluster.Joining)
	w.State("a", multicluster.Live)
	w.Project("b")
	w.Within(w.soon, func() string { return w.state("b", multicluster.Live) })
	before := time.Now()
	if _, err := w.Op.Fleet.GetCluster(w.Ctx, "dead"); !errors.Is(err, multicluster.ErrClusterNotLive) {
		w.Errorf("the dead cluster is there: %v", err)
	}
	if took := time.Since(before); took > w.soon {
		w.Errorf("Get took %v", took)
	}
}

// madeAnew: a Project that is deleted and created again is another cluster, with a control plane of its own.
func madeAnew(w *World) {
	w.Live("a")
	old, err := w.Op.Fleet.GetCluster(w.Ctx, "a")
	w.Must(err)
	w.Must(
		w.In("a").Create(w.Ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "of-the-old"}}),
	)
	w.Remove("a")
	w.Live("a")
	p := w.Reason("a", api.ReasonReady)
	now, err := w.Op.Fleet.GetCluster(w.Ctx, "a")
	w.Must(err)
	if now == old || !errors.Is(old.Err(), multicluster.ErrClusterGone) || now.Info().Identity != string(p.UID) {
		w.Errorf("the old cluster: %v; the new one: %+v", old.Err(), now.Info())
	}
	info, secrets := &corev1.ConfigMap{}, &corev1.SecretList{}
	w.Must(now.Get(w.Ctx, client.ObjectKey{Namespace: "default", Name: "project-info"}, info))
	w.Must(now.List(w.Ctx, secrets))
	if info.Data["uid"] != string(p.UID) || len(secrets.Items) != 0 {
		w.Errorf("the new control plane has %v and %d secrets", info.Data, len(secrets.Items))
	}
}

// notReadyAnyMore: a control plane that is no longer ready leaves the fleet until it is ready again.
func notReadyAnyMore(w *World) {
	w.Live("a")
	w.StopHost()
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue} {
		plane := &infrastructure.ProjectControlPlane{}
		w.Must(w.Get(w.Ctx, client.ObjectKey{Name: "a"}, plane))
		conditions.Set(&plane.Status.Conditions, plane.Generation,
			metav1.Condition{Type: infrastructure.ControlPlaneReady, Status: status, Reason: "Test"})
		w.Must(w.Status().Update(w.Ctx, plane))
		if status == metav1.ConditionFalse {
			w.Reason("a", api.ReasonProvisioning)
			w.State("a", multicluster.Waiting)
		}
	}
	w.Reason("a", api.ReasonReady)
	w.State("a", multicluster.Live)
	w.StartHost()
}

// selector: labels decide which Projects are in the fleet, at any time.
func selector(w *World) {
	w.Project("a", "env=prod")
	w.Project("b", "env=test")
	w.State("a", multicluster.Live)
	w.Reason("b", api.ReasonReady)
	w.State("b", multicluster.Gone)
	for name, value := range map[string]string{"a": "test", "b": "prod"} {
		p := &api.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}
		w.Must(controllerutil.RetryOnConflict(w.Ctx, w.Client, p, func() error {
			p.Labels["env"] = value
			return nil
		}))
	}
	w.State("a", multicluster.Gone)
	w.State("b", multicluster.Live)
}

// indexes: an index applies to the present control planes and to later ones.
func indexes(w *World) {
	byLetter := func(obj client.Object) []string { return []string{obj.GetName()[:1]} }
	w.Live("a")
	w.Must(w.Op.Fleet.IndexField(w.Ctx, &corev1.Secret{}, "letter", byLetter))
	w.Live("b")
	for _, name := range []string{"a", "b"} {
		for _, secret := range []string{"x1", "x2", "y"} {
			w.Must(
				w.In(name).Create(w.Ctx,
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: secret}}),
			)
		}
		w.Eventually(func() string {
			c, err := w.Op.Fleet.GetCluster(w.Ctx, name)
			w.Must(err)
			var list corev1.SecretList
			w.Must(c.List(w.Ctx, &list, client.MatchingFields{"letter": "x"}))
			if len(list.Items) != 2 {
				return fmt.Sprintf("in %s the index has %d, want 2", name, len(list.Items))
			}
			return ""
		})
	}
}

// restored: what belongs in a control plane is restored.
func restored(w *World) {
	w.Live("a")
	c := w.In("a")
	w.Must(c.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}))
	w.Must(
		c.Delete(w.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "project-info"}}),
	)
	w.Eventually(func() string {
		n := &corev1.Namespace{}
		if err := c.Get(w.Ctx, client.ObjectKey{Namespace: "default", Name: "project-info"},
			&corev1.ConfigMap{}); err != nil {
			return err.Error()
		}
		if w.Must(c.Get(w.Ctx, client.ObjectKey{Name: "team"}, n)); n.Labels[api.ProjectNameLabel] != "a" {
			return fmt.Sprintf("the namespace has the labels %v", n.Labels)
		}
		return ""
	})
}

// idle: an operator with nothing to do writes nothing, neither here nor in control planes. The same is true of one that
// starts.
func idle(w *World) {
	w.Live("a", "b", "c")
	w.Idle()
	w.Stop()
	w.Take()
	w.Start()
	w.State("c", multicluster.Live)
	time.Sleep(w.idle)
	if writes := w.Take(); len(writes) > 0 {
		w.Errorf("started anew, and yet: %q", writes)
	}
}
