package replicaset_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

var pods, sets = corev1.Resource("pods"), appsv1.Resource("replicasets")

// A ReplicaSet is scaled, loses a pod, adopts one, gives one away, and is replaced by another of its name.
func TestSimulatedLife(t *testing.T) {
	labels := map[string]string{"app": "web"}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	orphan := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orphan", Labels: labels},
		Spec:       set.Spec.Template.Spec,
	}
	scale := func(u *simtest.User, n int32) {
		simtest.Update(u, set, func(s *appsv1.ReplicaSet) { s.Spec.Replicas = ptr.To(n) })
	}
	simtest.Check(t, simtest.Scenario{
		Build:  simulated.Controllers(replicaset.Name),
		Others: []func(*simtest.Env) (simtest.Program, error){simulated.Node, simulated.GarbageCollector(pods, sets)},
		Roles:  simulated.Roles(t, "../../deploy/role.yaml", "../../deploy/manager.yaml"),
		Budget: 2 * time.Second,
		// As in kube-controller-manager, a create whose answer was lost is repeated, and the surplus pod deleted.
		Allow: []simtest.Rule{simtest.RuleCreates},
		Script: func(u *simtest.User) {
			u.Create(orphan)
			u.Create(set)
			u.Settle()
			scale(u, 3)
			u.Settle()
			simtest.Update(u, orphan, func(p *corev1.Pod) { p.Labels["app"] = "other" })
			u.Settle()
			// As in kube-controller-manager, a set that has not seen the label may delete the pod when it shrinks.
			u.Delete(orphan)
			u.Settle()
			u.Do("delete a pod of the set", deleteOne)
			u.Settle()
			scale(u, 1)
			u.Settle()
			u.Delete(set)
			u.Create(set)
			u.Settle()
		},
		Always: map[string]func(s *simtest.State) error{"no more pods than asked for": noSurplus},
	})
}

// deleteOne deletes one of the pods of default/web.
func deleteOne(ctx context.Context, c client.Client) error {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace("default"), client.MatchingLabels{"app": "web"}); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return nil
	}
	return c.Delete(ctx, &list.Items[0])
}

// noSurplus: a set never has more pods than the largest number that the script asks for, and one for each fault.
func noSurplus(s *simtest.State) error {
	active := map[string]int{}
	for _, pod := range simtest.List[*corev1.Pod](s, "") {
		if owner := metav1.GetControllerOf(pod); owner != nil && pod.DeletionTimestamp == nil {
			active[string(owner.UID)]++
		}
	}
	for uid, n := range active {
		if n > 3+2 {
			return fmt.Errorf("the set %s has %d pods", uid, n)
		}
	}
	return nil
}
