package chapter09

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// A keeper keeps as many pods as a ReplicaSet asks for.
type keeper struct {
	client.Client
	// read are options of its list of pods.
	read []client.ListOption
	// sleep is how long it waits after it has written.
	sleep time.Duration
	// expected is nil or counts the events that must come before the next reconcile.
	expected *expectations
}

// Reconcile creates the pods that are missing, and deletes those that are too many.
func (k *keeper) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	if k.expected != nil && !k.expected.fulfilled() {
		return ctrl.Result{}, nil
	}
	var set appsv1.ReplicaSet
	if err := k.Get(ctx, r.NamespacedName, &set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var pods corev1.PodList
	if err := k.List(ctx, &pods, append(k.read, client.InNamespace(r.Namespace))...); err != nil {
		return ctrl.Result{}, err
	}
	missing := int(*set.Spec.Replicas) - len(pods.Items)
	if k.expected != nil {
		k.expected.expect(max(missing, 0), max(-missing, 0))
	}
	for n := range missing {
		if err := k.Create(ctx, k.podOf(&set)); err != nil {
			if k.expected != nil {
				k.expected.failed(missing - n)
			}
			return ctrl.Result{}, err
		}
	}
	for n := range -missing {
		if err := k.Delete(ctx, &pods.Items[n]); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	time.Sleep(k.sleep)
	return ctrl.Result{}, nil
}

// podOf returns a pod for the set. The server makes its name.
func (k *keeper) podOf(set *appsv1.ReplicaSet) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, GenerateName: set.Name + "-"},
		Spec:       set.Spec.Template.Spec,
	}
	_ = ctrl.SetControllerReference(set, pod, k.Scheme()) // It fails only for kinds that the scheme does not know.
	return pod
}

// setup builds the controller.
func (k *keeper) setup(mgr *ctrl.Manager) error {
	k.Client = mgr.GetClient()
	seen := builder.WithPredicates(func(e predicate.Event[ctrl.Object]) bool {
		if k.expected != nil {
			k.expected.seen(e.Type)
		}
		return true
	})
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.ReplicaSet{}).Owns(&corev1.Pod{}, seen).Complete(k)
}
