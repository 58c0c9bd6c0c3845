package tutorial

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// runs is the annotation with the name of the Pod that a ConfigMap has led to.
const runs = "example.com/pod"

// runner starts a Pod for every ConfigMap that holds a command, and writes the Pod's name into an annotation.
type runner struct{ client.Client }

// Reconcile starts the Pod of one ConfigMap.
func (r *runner) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var task corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &task); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if task.Data["command"] == "" || task.Annotations[runs] != "" {
		return ctrl.Result{}, nil
	}
	pod := podOf(&task)
	if err := r.Create(ctx, pod); err != nil {
		return ctrl.Result{}, err
	}
	task.Annotations = map[string]string{runs: pod.Name}
	return ctrl.Result{}, r.Update(ctx, &task)
}

// podOf returns the Pod of a task.
func podOf(task *corev1.ConfigMap) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: task.Namespace, GenerateName: task.Name + "-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "task", Image: "busybox:1.37", Command: []string{"sh", "-c", task.Data["command"]},
		}}},
	}
}

// newManager returns a manager that runs runner.
func newManager(config *rest.Config) (*ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{})
	if err != nil {
		return nil, err
	}
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(&runner{mgr.GetClient()})
}
