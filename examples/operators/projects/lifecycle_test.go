package main

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/multicluster"
)

// sequence is the sequence of states of the condition ResourceCleanup.
const sequence = "True CleanupStarted, True CleanupAwaitingCompletion, False CleanupComplete"

// nameConflict: the control plane of an earlier Project is not taken over. When it is gone, the new one is created.
func nameConflict(w *World) {
	plane := &infrastructure.ProjectControlPlane{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{api.ProjectUIDLabel: "another"}},
	}
	plane.Finalizers = []string{"example.com/hold"}
	w.Must(w.Create(w.Ctx, plane))
	w.Project("a")
	w.Reason("a", api.ReasonNameConflict)
	w.State("a", multicluster.Waiting)
	w.Must(w.Delete(w.Ctx, plane))
	w.Must(controllerutil.RetryOnConflict(w.Ctx, w.Client, plane, func() error {
		plane.Finalizers = nil
		return nil
	}))
	w.Reason("a", api.ReasonReady)
	w.State("a", multicluster.Live)
}

// deletedBeforeSeen: a Project that is being deleted gets neither a finalizer nor a control plane.
func deletedBeforeSeen(w *World) {
	w.Stop()
	p := &api.Project{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"example.com/hold"}}}
	p.Spec.OwnerRef = api.OwnerRef{Kind: "Organization", Name: "acme"}
	w.Must(w.Create(w.Ctx, p))
	w.Must(w.Delete(w.Ctx, p))
	w.Take()
	w.Start()
	w.State("a", multicluster.Waiting)
	w.Idle()
	err := w.Get(w.Ctx, client.ObjectKey{Name: "a"}, &infrastructure.ProjectControlPlane{})
	if !apierrors.IsNotFound(err) {
		w.Errorf("there is a control plane: %v", err)
	}
	w.Must(controllerutil.RetryOnConflict(w.Ctx, w.Client, p, func() error {
		p.Finalizers = nil
		return nil
	}))
	w.IsGone("a")
}

// fill creates objects in a control plane. One ConfigMap has the finalizers.
func (w *World) fill(name string, finalizers ...string) client.Client {
	w.Helper()
	c := w.In(name)
	w.Must(c.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}))
	for _, ns := range []string{"team", "default"} {
		for i := range 5 {
			w.Must(
				c.Create(w.Ctx,
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprint("s-", i)}}),
			)
		}
	}
	w.Must(
		c.Create(w.Ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "held", Finalizers: finalizers}}),
	)
	return c
}

// purged: the content of a Project is deleted, and the Project waits for it.
func purged(w *World) {
	w.Live("a")
	c := w.fill("a", "example.com/hold")
	server := w.Host.Server("a")
	p := &api.Project{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	w.Must(w.Delete(w.Ctx, p))
	held := &corev1.ConfigMap{}
	w.Eventually(func() string {
		var secrets corev1.SecretList
		w.Must(c.List(w.Ctx, &secrets))
		w.Must(c.Get(w.Ctx, client.ObjectKey{Namespace: "team", Name: "held"}, held))
		if len(secrets.Items) > 0 || held.DeletionTimestamp == nil {
			return fmt.Sprintf("there are still %d secrets, and the config map is told to go: %v", len(secrets.Items),
				held.DeletionTimestamp)
		}
		return ""
	})
	time.Sleep(2 * time.Second)
	w.Must(w.Get(w.Ctx, client.ObjectKeyFromObject(p), p))
	if c := conditions.Get(p.Status.Conditions, api.ResourceCleanup); c == nil ||
		c.Reason != api.ReasonCleanupAwaiting {
		w.Errorf("while something is held, the condition is %+v", c)
	}
	w.State("a", multicluster.Waiting)
	held.Finalizers = nil
	w.Must(c.Update(w.Ctx, held))
	w.IsGone("a")
	if got := w.Cleanup("a"); got != sequence {
		w.Errorf("the cleanup went through %s, want %s", got, sequence)
	}
	deleted := map[string]int{}
	for _, e := range server.Audit().Entries(nil) {
		if e.Verb == "deletecollection" && e.Code == 200 {
			deleted[e.Namespace+"/"+e.Resource]++
		}
	}
	if deleted["team/secrets"] == 0 || deleted["default/secrets"] == 0 {
		w.Errorf("deleted were %v", deleted)
	}
}

// purgedByForce: if nobody removes the finalizers of a Project's content, the operator does.
func purgedByForce(w *World) {
	w.Live("a")
	w.fill("a", "example.com/hold")
	w.Remove("a")
	if got := w.Cleanup("a"); got != sequence {
		w.Errorf("the cleanup went through %s, want %s", got, sequence)
	}
}

// purgeUnreachable: a Project whose control plane does not answer goes when its time is over, and reports that.
func purgeUnreachable(w *World) {
	w.Live("a", "b")
	w.fill("a")
	w.Host.Silence("a", true)
	begin := time.Now()
	w.Must(w.Delete(w.Ctx, &api.Project{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	w.Remove("b") // it delays no other
	if took := time.Since(begin); took > w.options.PurgeTimeout+w.soon {
		w.Errorf("the other project took %v", took)
	}
	w.IsGone("a")
	if took := time.Since(begin); took < w.options.PurgeTimeout-time.Second || took > w.options.PurgeTimeout+
		8*w.soon {
		w.Errorf("it took %v, with a deadline of %v", took, w.options.PurgeTimeout)
	}
	if got, want := w.Cleanup("a"), "True CleanupStarted, False CleanupComplete"; got != want {
		w.Errorf("the cleanup went through %s, want %s", got, want)
	}
	w.Eventually(func() string {
		var events corev1.EventList
		w.Must(w.List(w.Ctx, &events))
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "a" && e.Type == corev1.EventTypeWarning &&
				strings.Contains(e.Message, "Given up after 4s") {
				return ""
			}
		}
		return "there is no event that says so"
	})
	w.Host.Silence("a", false)
}

// purgeNothing: a Project that never got its control plane has nothing to wait for.
func purgeNothing(w *World) {
	w.StopHost()
	w.Project("a")
	w.Reason("a", api.ReasonProvisioning)
	begin := time.Now()
	w.Remove("a")
	if took := time.Since(begin); took > 10*time.Second {
		w.Errorf("it took %v", took)
	}
	w.StartHost()
}

// purgeInterrupted: an operator that stops in the middle of a cleanup continues it when it starts again.
func purgeInterrupted(w *World) {
	w.Live("a")
	c := w.fill("a", "example.com/hold")
	w.Must(w.Delete(w.Ctx, &api.Project{ObjectMeta: metav1.ObjectMeta{Name: "a"}}))
	w.Eventually(func() string {
		if got := w.Cleanup("a"); !strings.HasSuffix(got, api.ReasonCleanupAwaiting) {
			return "the cleanup is at " + got
		}
		return ""
	})
	w.Stop()
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "held"}}
	w.Must(controllerutil.RetryOnConflict(w.Ctx, c, held, func() error {
		held.Finalizers = nil
		return nil
	}))
	w.Start()
	w.IsGone("a")
	if got := w.Cleanup("a"); got != sequence {
		w.Errorf("the cleanup went through %s, want %s", got, sequence)
	}
}
