package controller

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
	"github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/internal/harness"
)

func setupGizmo(mgr ctrl.Manager) error {
	return (&GizmoReconciler{
		Client:   mgr.GetClient(),
		Recorder: mgr.GetEventRecorderFor("gizmo-controller"),
	}).SetupWithManager(mgr)
}

func newGizmo(message string) *samplev1alpha1.Gizmo {
	return &samplev1alpha1.Gizmo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"},
		Spec:       samplev1alpha1.GizmoSpec{Message: message},
	}
}

// TestGizmo follows a Gizmo through its life: created, changed, deleted.
func TestGizmo(t *testing.T) {
	harness.Run(t, setupGizmo, func(t *testing.T, c client.Client) {
		ctx := t.Context()
		obj := newGizmo("hello")
		key := client.ObjectKeyFromObject(obj)
		for _, message := range []string{"hello", "hello again"} {
			// Another client may have changed the object since it was read: RetryOnConflict reads it again.
			var err error
			if obj.UID == "" {
				err = c.Create(ctx, obj)
			} else {
				err = controllerutil.RetryOnConflict(ctx, c, obj, func() error {
					obj.Spec.Message = message
					return nil
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if err := c.Get(ctx, key, obj); err != nil {
				t.Fatal(err)
			}
			if !conditions.Is(obj.Status.Conditions, conditions.Ready, metav1.ConditionTrue) {
				t.Errorf("conditions are %+v, want Ready", obj.Status.Conditions)
			}
			configMap := &corev1.ConfigMap{}
			owned := client.ObjectKey{Namespace: key.Namespace, Name: obj.Status.ConfigMap}
			if err := c.Get(ctx, owned, configMap); err != nil {
				t.Fatal(err)
			}
			if got := configMap.Data["message"]; got != message {
				t.Errorf("the ConfigMap has %q, want %q", got, message)
			}
		}
		if err := c.Delete(ctx, obj); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := c.Get(ctx, key, obj); !apierrors.IsNotFound(err) {
			t.Errorf("after it was deleted: %v, want NotFound", err)
		}
	})
}

// lifeOfAGizmo is a script: the user looks at what has become of a Gizmo after each step.
func lifeOfAGizmo(u *simtest.User) {
	obj := newGizmo("hello")
	u.Create(obj)
	u.Settle()
	simtest.Update(u, obj, func(g *samplev1alpha1.Gizmo) { g.Spec.Message = "hello again" })
	u.Settle()
	u.Delete(obj)
}

// TestGizmoUnderFaults does the same with every fault at every write: the process is killed, answers are lost, watches
// are late. At each Settle and at the end the cluster must look as it does without faults.
func TestGizmoUnderFaults(t *testing.T) {
	simtest.Check(t, harness.UnderFaults(t, setupGizmo, lifeOfAGizmo))
}

// forgetfulGizmo has a bug: it generates the name of the ConfigMap. If it is killed before it has written the name into
// the status, the next process creates another ConfigMap.
type forgetfulGizmo struct{ client.Client }

func (r *forgetfulGizmo) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var obj samplev1alpha1.Gizmo
	if err := r.Get(ctx, req.NamespacedName, &obj); err != nil || obj.Status.ConfigMap != "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owned := metav1.ObjectMeta{Namespace: obj.Namespace, GenerateName: obj.Name + "-"}
	configMap := &corev1.ConfigMap{ObjectMeta: owned}
	if err := ctrl.SetControllerReference(&obj, configMap, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Create(ctx, configMap); err != nil {
		return ctrl.Result{}, err
	}
	before := obj.DeepCopy()
	obj.Status.ConfigMap = configMap.Name
	return ctrl.Result{}, r.Status().Patch(ctx, &obj, client.MergeFrom(before))
}

// TestGizmoScriptFindsDuplicates tests the test above: its script must show a duplicate, although all ConfigMaps are
// deleted in the end.
func TestGizmoScriptFindsDuplicates(t *testing.T) {
	found, report := simtest.Find(t, harness.UnderFaults(t, func(mgr ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(mgr).For(&samplev1alpha1.Gizmo{}).Complete(&forgetfulGizmo{mgr.GetClient()})
	}, lifeOfAGizmo), simtest.Options{Runs: 20, Budget: time.Minute})
	if found == nil || found.Rule != simtest.RuleEnd {
		t.Errorf("%d runs found %v", report.Runs, found)
	}
}

// TestGizmoWhoseConfigMapIsTaken: what hinders a Gizmo stands in its conditions and in an event.
func TestGizmoWhoseConfigMapIsTaken(t *testing.T) {
	harness.Run(t, setupGizmo, func(t *testing.T, c client.Client) {
		ctx := t.Context()
		others, controller := &corev1.ConfigMap{}, true
		others.Namespace, others.Name = "default", "first-gizmo"
		others.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: "other", UID: "other", Controller: &controller},
		}
		obj := newGizmo("hello")
		if err := c.Create(ctx, others); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // Until the manager's cache has it.
		if err := c.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
		if !conditions.Is(obj.Status.Conditions, conditions.Reconciling, metav1.ConditionTrue) {
			t.Errorf("conditions are %+v, want Reconciling", obj.Status.Conditions)
		}
		var events corev1.EventList
		if err := c.List(ctx, &events, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		if len(events.Items) != 1 || events.Items[0].Type != corev1.EventTypeWarning {
			t.Errorf("events are %+v, want one warning", events.Items)
		}
	})
}

// flyball:message

// TestInvalidGizmo: the server rejects what the markers in gizmo_types.go forbid.
func TestInvalidGizmo(t *testing.T) {
	harness.Run(t, setupGizmo, func(t *testing.T, c client.Client) {
		if err := c.Create(t.Context(), newGizmo("")); !apierrors.IsInvalid(err) {
			t.Errorf("without a message: %v, want Invalid", err)
		}
	})
}

// flyball:end
