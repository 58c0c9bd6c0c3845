package simulated

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// newWorkloads is kube-controller-manager with two controllers.
//
// Source: k8s.io/kubernetes v1.37.2 cmd/kube-controller-manager/app/apps.go, newReplicaSetController and
// newDeploymentController; the numbers of workers are its defaults. Its clients' limit of 20 requests a second is off.
func newWorkloads(e *simtest.Env) (simtest.Program, error) {
	config := e.Config()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return simtest.ProgramFunc(func(ctx context.Context) error {
		factory := informers.NewSharedInformerFactory(client, 12*time.Hour)
		apps, core := factory.Apps().V1(), factory.Core().V1()
		sets := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client,
			replicaset.BurstReplicas)
		deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(),
			client)
		if err != nil {
			return err
		}
		factory.Start(ctx.Done())
		var controllers sync.WaitGroup
		controllers.Go(func() { sets.Run(ctx, 5) })
		controllers.Go(func() { deployments.Run(ctx, 5) })
		controllers.Wait()
		factory.Shutdown()
		return nil
	}), nil
}

// readyPods is as much of a kubelet as a scenario needs: pods are ready as soon as they are there.
func readyPods(e *simtest.Env) (simtest.Program, error) {
	mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{})
	if err != nil {
		return nil, err
	}
	c := mgr.GetClient()
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Complete(ctrl.ReconcilerFunc(
		func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			var pod corev1.Pod
			if err := c.Get(ctx, r.NamespacedName, &pod); err != nil || pod.Status.Phase == corev1.PodRunning {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			return ctrl.Result{}, makeReady(ctx, c, &pod)
		}))
}

func makeReady(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
	}}
	return c.Status().Update(ctx, pod)
}

func webDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
}

// workloadsScenario creates a Deployment of three pods, replaces its image, and leaves it one pod.
func workloadsScenario() simtest.Scenario {
	return simtest.Scenario{
		Build:  newWorkloads,
		Others: []func(*simtest.Env) (simtest.Program, error){readyPods},
		Script: func(u *simtest.User) {
			u.Create(webDeployment())
			u.Settle()
			simtest.Update(u, webDeployment(), func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Image = "web:2"
			})
			u.Settle()
			simtest.Update(u, webDeployment(), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) })
			u.Settle()
		},
	}
}

// TestWorkloads: if the answer to the create of a pod is lost, the ReplicaSet controller counts the pod as not created,
// and tries again after the next event, or after 5 ms. If its watch has not shown the pod by then, it creates one too
// many, and deletes one when it sees them all.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, manageReplicas: skippedPods, and the
// comment above ExpectCreations.
func TestWorkloads(t *testing.T) {
	expect(t, workloadsScenario(), simtest.RuleCreates, "pods default/web-")
}

// TestReplicaSetScaledDown: if the answer to a delete is lost, the controller counts the pod as not deleted, and may
// delete a pod that it is to keep. Three pods are to become one. It deletes two, and the answer to one delete is lost.
// It tries again when its cache has seen the other delete but not yet this one. There are still two pods in it, so it
// deletes one of them. It prefers neither if they were created, and
// became ready, in the same second. If it takes the other one, no pod is left until it has created another. A delete
// that takes longer than the 5 minutes after which expectations expire has the same effect.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, manageReplicas: DeletionObserved after an
// error; pkg/controller/controller_utils.go, ActivePodsWithRanks and ExpectationsTimeout.
func TestReplicaSetScaledDown(t *testing.T) {
	s := workloadsScenario()
	s.Allow = []simtest.Rule{simtest.RuleCreates, simtest.RuleEnd, simtest.RuleDeletes}
	s.Always = map[string]func(s *simtest.State) error{"a pod is left": func(s *simtest.State) error {
		set, ok := simtest.Get[*appsv1.ReplicaSet](s, "default", "web")
		if ok && set.Status.Replicas > 0 && len(simtest.List[*corev1.Pod](s, "default")) == 0 {
			return fmt.Errorf("the ReplicaSet had %d pods, wants %d, and has none", set.Status.Replicas,
				*set.Spec.Replicas)
		}
		return nil
	}}
	s.Script = func(u *simtest.User) {
		u.Create(webReplicaSet())
		u.Settle()
		simtest.Update(u, webReplicaSet(), func(r *appsv1.ReplicaSet) { r.Spec.Replicas = ptr.To[int32](1) })
		u.Settle()
	}
	expect(t, s, simtest.RuleAlways, "a pod is left")
}

func webReplicaSet() *appsv1.ReplicaSet {
	d := webDeployment()
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template,
		},
	}
}
