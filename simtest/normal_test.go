package simtest

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// Of two pods with generated names one has an owner that exists, the other the owner before. Which of the two names
// comes first is chance.
func TestEndsDoNotDependOnGeneratedNames(t *testing.T) {
	const now = types.UID("aaaaaaaa-0000-0000-0000-000000000001")
	const before = types.UID("bbbbbbbb-0000-0000-0000-000000000002")
	pod := func(name string, owner types.UID) (id, stored) {
		return id{resource{GroupResource: corev1.Resource("pods")}, "default", name}, newStored(
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, GenerateName: "web-",
				OwnerReferences: []metav1.OwnerReference{{Kind: "ConfigMap", Name: "web", UID: owner}},
			}}, corev1.SchemeGroupVersion.WithKind("Pod"), 5,
		)
	}
	end := func(first, second types.UID) *end {
		s := &State{scheme: clientscheme.Scheme, objects: map[id]stored{
			{resource{GroupResource: corev1.Resource("configmaps")}, "default", "web"}: newStored(
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: now}},
				corev1.SchemeGroupVersion.WithKind("ConfigMap"), 4,
			),
		}}
		for name, owner := range map[string]types.UID{"web-ccccc": first, "web-bbbbb": second} {
			i, o := pod(name, owner)
			s.objects[i] = o
		}
		return normalize(s, 1)
	}
	if diff := end(now, before).diff(end(before, now)); len(diff) > 0 {
		t.Errorf("the ends differ: %q", diff)
	}
	if diff := end(now, before).diff(end(now, now)); len(diff) == 0 {
		t.Error("an owner that is gone is taken for one that exists")
	}
}

// reporter sets two conditions, each with a write of its own. Which one comes first depends on the process.
type reporter struct {
	client.Client
	conditions []appsv1.DeploymentCondition
}

func (c *reporter) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, condition := range c.conditions {
		if !slices.ContainsFunc(app.Status.Conditions, func(old appsv1.DeploymentCondition) bool {
			return old.Type == condition.Type
		}) {
			app.Status.Conditions = append(app.Status.Conditions, condition)
			return ctrl.Result{}, c.Status().Update(ctx, &app)
		}
	}
	return ctrl.Result{}, nil
}

// TestListsByKey: the items of a list of the type map are compared by their keys, so that their order does not matter.
func TestListsByKey(t *testing.T) {
	for _, test := range []struct {
		second corev1.ConditionStatus // of the condition "B", if the second process sets it
		want   []string
	}{
		{corev1.ConditionTrue, nil},
		{corev1.ConditionFalse, []string{
			`deployments default/web: status.conditions[type=B].status is "False", without faults it is "True"`,
		}},
	} {
		found, _ := Find(t, Scenario{
			Build: func(e *Env) (Program, error) {
				mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{})
				if err != nil {
					return nil, err
				}
				conditions := []appsv1.DeploymentCondition{{Type: "A", Status: "True"}, {Type: "B", Status: "True"}}
				if e.Incarnation() > 1 {
					slices.Reverse(conditions)
					conditions[0].Status = test.second
				}
				r := &reporter{mgr.GetClient(), conditions}
				return mgr, ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Complete(r)
			},
			Script: func(u *User) {
				labels := map[string]string{"app": "web"}
				app := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
				app.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
				app.Spec.Template.Labels = labels
				app.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
				u.Create(app)
				u.Settle()
			},
		}, Options{Runs: 20})
		var got []string
		if found != nil {
			got = found.Diff
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("the second process writes %s: %q, want %q", test.second, got, test.want)
		}
	}
}
