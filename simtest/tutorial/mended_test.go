package tutorial

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// mended is runner without the bug.
type mended struct{ client.Client }

// Reconcile starts the Pod of one ConfigMap. The Pod's name follows from that of the ConfigMap. If the process is
// killed between the two writes, the next one finds the Pod instead of making another.
func (m *mended) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var task corev1.ConfigMap
	if err := m.Get(ctx, req.NamespacedName, &task); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if task.Data["command"] == "" || task.Annotations[runs] != "" {
		return ctrl.Result{}, nil
	}
	pod := podOf(&task)
	pod.GenerateName, pod.Name = "", task.Name
	if err := m.Create(ctx, pod); client.IgnoreAlreadyExists(err) != nil {
		return ctrl.Result{}, err
	}
	task.Annotations = map[string]string{runs: pod.Name}
	return ctrl.Result{}, m.Update(ctx, &task)
}

// newMended returns a manager that runs mended.
func newMended(config *rest.Config) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{})
	if err != nil {
		return nil, err
	}
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(&mended{mgr.GetClient()})
}
