package deployment

import (
	"errors"
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/conditions"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/internal/claim"
	"github.com/flyball-dev/flyball/reconcile"
)

// reconcilerOver is a reconciler whose caches hold these objects, on a client that acts as in a scene.
func reconcilerOver(s *scene, podList []*corev1.Pod) *reconciler {
	d, sets := s.a.observed.Deployment, s.a.observed.ReplicaSets
	return newReconciler(parts{
		client: s.client, recorder: s,
		deployments: listed[*appsv1.Deployment]{
			cacheAt: cacheAt[*appsv1.Deployment]{objects: []*appsv1.Deployment{d}, version: "100"},
		},
		sets: listed[*appsv1.ReplicaSet]{
			cacheAt: cacheAt[*appsv1.ReplicaSet]{objects: sets, version: "100"},
			index:   claim.IndexByController[*appsv1.ReplicaSet],
		},
		pods: listed[*corev1.Pod]{
			cacheAt: cacheAt[*corev1.Pod]{objects: podList},
			index:   claim.IndexByController[*corev1.Pod],
		},
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go, syncDeployment and handleErr
func TestReconcile(t *testing.T) {
	key := reconcile.RequestFor(web(1))
	t.Run("gone", func(t *testing.T) {
		s := newScene(t, web(1))
		other := web(1)
		other.Name = "other"
		result, err := reconcilerOver(s, nil).Reconcile(t.Context(), reconcile.RequestFor(other))
		if err != nil || result != (reconcile.Result{}) || len(s.sent) > 0 {
			t.Errorf("%+v, %v, %v", result, err, s.sent)
		}
	})
	t.Run("what cannot be understood is not tried again", func(t *testing.T) {
		for name, d := range map[string]*appsv1.Deployment{
			"strategy": web(1, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = "Canary" }),
			"selector": web(1, func(d *appsv1.Deployment) {
				d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}
			}),
		} {
			if _, err := reconcilerOver(newScene(t, d), nil).Reconcile(t.Context(), key); !reconcile.IsTerminal(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("one that selects all claims nothing", func(t *testing.T) {
		d := web(1, func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} })
		s := newScene(t, d, set(d, 1, "v1", 1, func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = nil }))
		_, err := reconcilerOver(s, nil).Reconcile(t.Context(), key)
		equal(t, "error", err, nil)
		s.wantSent("update/status web")
		equal(t, "events", len(s.events), 1)
	})
	t.Run("a failed write is tried again", func(t *testing.T) {
		d := web(1)
		s := newScene(t, d)
		name := "web-" + replicasets.ComputeHash(&d.Spec.Template, nil)
		s.fail["create "+name] = refused
		if _, err := reconcilerOver(s, nil).Reconcile(t.Context(), key); !is(err, refused) ||
			reconcile.IsTerminal(err) {
			t.Errorf("error: %v", err)
		}
	})
	t.Run("not so in a namespace that is going away", func(t *testing.T) {
		d := web(1)
		s := newScene(t, d)
		ending := apierrors.NewForbidden(appsv1.Resource("replicasets"), "x", errors.New("being terminated"))
		ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		s.fail["create web-"+replicasets.ComputeHash(&d.Spec.Template, nil)] = ending
		_, err := reconcilerOver(s, nil).Reconcile(t.Context(), key)
		equal(t, "error", err, nil)
		equal(t, "events", len(s.events), 0)
	})
	t.Run("comes back for the deadline", func(t *testing.T) {
		d := web(3, annotate(replicasets.RevisionAnnotation, "1"))
		v2 := set(d, 1, "v2", 3, availableOf(1))
		d.Status = plannerFor(t, d, v2).status()
		progressing(corev1.ConditionTrue, conditions.ReplicaSetUpdated, 0)(d)
		d.Status.Conditions[1].LastUpdateTime = metav1.Now()
		s := newScene(t, d, v2)
		result, err := reconcilerOver(s, nil).Reconcile(t.Context(), key)
		if err != nil || result.RequeueAfter <= 0 || len(s.sent) > 0 {
			t.Errorf("%+v, %v, %v", result, err, s.sent)
		}
	})
}

// A sync is put off until the caches show what the last one wrote, of the Deployment and of its ReplicaSets; and not
// for what it wrote for another of its name.
func TestReadyWaitsForOwnWrites(t *testing.T) {
	d := web(3)
	v1 := set(d, 1, "v1", 3)
	other := d.DeepCopy()
	other.UID = "another of that name"
	for name, c := range map[string]struct {
		owner   *appsv1.Deployment
		written client.Object
		want    bool
	}{
		"nothing written":              {d, nil, true},
		"the deployment seen":          {d, at(d.DeepCopy(), "100"), true},
		"the deployment not seen":      {d, at(d.DeepCopy(), "101"), false},
		"a replica set not seen":       {d, at(v1.DeepCopy(), "101"), false},
		"a created one, gone again":    {d, at(set(d, 2, "v2", 3), "100"), true},
		"versions that do not compare": {d, at(v1.DeepCopy(), "abc"), false},
		"another of its name":          {other, at(other.DeepCopy(), "101"), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, d, v1)
			s.unchanged = true
			r := reconcilerOver(s, nil)
			if c.written != nil {
				equal(t, "error", r.client.Update(client.WithOwner(t.Context(), c.owner.UID), c.written), nil)
			}
			err := r.ready(t.Context(), reconcile.RequestFor(d))
			if (err == nil) != c.want || err != nil && !errors.Is(err, client.ErrStale) {
				t.Errorf("got %v, want ready: %v", err, c.want)
			}
		})
	}
}

// Pods are looked up for a Recreate Deployment only, by the ReplicaSet that controls them.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go, getPodMapForDeployment
func TestObservePods(t *testing.T) {
	d := web(1, recreate)
	v1 := set(d, 1, "v1", 0)
	mine := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "mine",
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(v1, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")),
		},
	}}
	bare := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bare"}}
	for name, tc := range map[string]struct {
		d    *appsv1.Deployment
		want int
	}{"recreate": {d, 1}, "rolling": {web(1), 0}} {
		o, err := reconcilerOver(newScene(t, tc.d, v1), []*corev1.Pod{mine, bare}).observe(t.Context(), tc.d)
		if err != nil || len(o.Pods[v1.UID]) != tc.want {
			t.Errorf("%s: %v, %v", name, o.Pods, err)
		}
	}
}

// claims answers patches of ReplicaSets, and reads of the Deployment.
func claims(s *scene, live *appsv1.Deployment, patched *appsv1.ReplicaSet, failure error) {
	s.server.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.sent = append(s.sent, "get web")
		return true, live, nil
	})
	s.server.PrependReactor("patch", "replicasets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		s.sent = append(s.sent, "patch "+a.(clienttesting.PatchAction).GetName())
		return true, patched, failure
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go, getReplicaSetsForDeployment
func TestClaim(t *testing.T) {
	d := web(1)
	orphan := set(d, 1, "v2", 1, func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = nil })
	adopted := at(set(d, 1, "v2", 1), "1000")
	t.Run("an adopted one can be written in the same sync", func(t *testing.T) {
		s := newScene(t, d, orphan)
		claims(s, d, adopted, nil)
		o, err := reconcilerOver(s, nil).observe(t.Context(), d)
		equal(t, "error", err, nil)
		equal(t, "claimed", len(o.ReplicaSets), 1)
		equal(t, "version", o.ReplicaSets[0].ResourceVersion, adopted.ResourceVersion)
		s.wantSent("get web", "patch web-v2")
	})
	t.Run("not when the deployment is another by now", func(t *testing.T) {
		s := newScene(t, d, orphan)
		another := web(1)
		another.UID = "another"
		claims(s, another, adopted, nil)
		if _, err := reconcilerOver(s, nil).Reconcile(t.Context(), reconcile.RequestFor(d)); err == nil {
			t.Error("no error")
		}
		s.wantSent("get web")
	})
	t.Run("a failure ends the sync", func(t *testing.T) {
		s := newScene(t, d, orphan)
		claims(s, d, nil,
			apierrors.NewGenericServerResponse(http.StatusInternalServerError, "patch", appsv1.Resource("replicasets"),
				"x", "", 0, true))
		if _, err := reconcilerOver(s, nil).Reconcile(t.Context(),
			reconcile.RequestFor(d)); !apierrors.IsInternalError(err) {
			t.Errorf("error: %v", err)
		}
		s.wantSent("get web", "patch web-v2")
	})
	t.Run("one that does not match any more is let go", func(t *testing.T) {
		lost := set(d, 1, "v2", 1, func(rs *appsv1.ReplicaSet) { rs.Labels = map[string]string{"app": "x"} })
		s := newScene(t, d, lost)
		claims(s, d, lost, nil)
		o, err := reconcilerOver(s, nil).observe(t.Context(), d)
		equal(t, "error", err, nil)
		equal(t, "claimed", len(o.ReplicaSets), 0)
		s.wantSent("patch web-v2")
	})
}

// The cache showed the new ReplicaSet only after the plan was made: the plan is made again with it, once.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet
func TestOverlookedReplicaSet(t *testing.T) {
	d := web(3)
	name := "web-" + replicasets.ComputeHash(&d.Spec.Template, nil)
	there := set(d, 1, "v2", 3)
	there.Name = name
	s := newScene(t, d)
	s.fail["create "+name] = apierrors.NewAlreadyExists(appsv1.Resource("replicasets"), name)
	r := reconcilerOver(s, nil)
	r.sets = cacheAt[*appsv1.ReplicaSet]{objects: []*appsv1.ReplicaSet{there}}
	_, err := r.carryOut(t.Context(), Observed{Deployment: d, Now: epoch})
	equal(t, "error", err, nil)
	s.wantSent("create "+name, "update/status web")
	equal(t, "events", len(s.events), 0)
}
