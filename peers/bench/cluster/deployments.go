package cluster

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	rtclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/manager"
)

// managerFlags are those of both managers: the same two controllers, with as many workers as both have by default, no
// lease, and limits on requests that neither reaches.
var managerFlags = []string{
	"--controllers=deployment,replicaset", "--concurrent-deployment-syncs=5", "--concurrent-replicaset-syncs=5",
	"--kube-api-qps=10000", "--kube-api-burst=10000", "--leader-elect=false",
}

// stepLabel is the label of a Deployment that has the step's name. The ReplicaSets do not get it.
const stepLabel = "step"

func deployments(objects, wave int) Load {
	return Load{
		Name: "deployments",
		Title: fmt.Sprintf("%d Deployments in waves of %d: created, new image, scaled from 1 to 2, deleted", objects,
			wave),
		Objects: objects, Wave: wave, Rate: 40,
		Steps: []Step{
			{"create", "create", createDeployment},
			{"image", "new image", patchDeployment(
				`{"template":{"spec":{"containers":[{"name":"main","image":"image:2"}]}}}`,
			)},
			{"scale", "scale", patchDeployment(`{"replicas":2}`)},
		},
		Systems: []System{
			{"kube-controller-manager", "kube-controller-manager", func(user Access) []string {
				return append([]string{"--kubeconfig=" + user.Kubeconfig, "--secure-port=0"}, managerFlags...)
			}},
			{"flyball manager", "flyball", func(user Access) []string {
				return append([]string{"manager", "--kubeconfig=" + user.Kubeconfig, "--port=0"}, managerFlags...)
			}},
		},
		Scheme: scheme.Scheme, Kubelet: true, prepare: nothing, sweep: sweepDeployments,
		watched: map[informer.Object]func(*tracker, informer.Object, bool){&appsv1.Deployment{}: seeDeployment},
	}
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: Namespace, Name: name} }

func createDeployment(ctx context.Context, c rtclient.Client, step, name string) error {
	d := &appsv1.Deployment{ObjectMeta: meta(name)}
	d.Labels = map[string]string{stepLabel: step}
	labels := map[string]string{"app": name}
	d.Spec.Replicas, d.Spec.Selector = ptr.To[int32](1), &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "image:1"}}
	return c.Create(ctx, d)
}

// patchDeployment returns a write that changes the spec.
func patchDeployment(spec string) func(context.Context, rtclient.Client, string, string) error {
	return func(ctx context.Context, c rtclient.Client, step, name string) error {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}},"spec":%s}`, stepLabel, step, spec)
		return c.Patch(ctx, &appsv1.Deployment{ObjectMeta: meta(name)},
			rtclient.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	}
}

// sweepDeployments deletes the Deployments, and what is theirs in place of the garbage collector, which neither side
// runs. It looks again: a controller that has not heard of a ReplicaSet's deletion may replace a pod.
func sweepDeployments(ctx context.Context, c rtclient.Client) error {
	in := rtclient.InNamespace(Namespace)
	return eventually(ctx, func() error {
		var left corev1.PodList
		err := errors.Join(c.DeleteAllOf(ctx, &appsv1.Deployment{}, in), c.DeleteAllOf(ctx, &appsv1.ReplicaSet{}, in),
			c.DeleteAllOf(ctx, &corev1.Pod{}, in, rtclient.GracePeriodSeconds(0)),
			c.List(ctx, &left, in, rtclient.Limit(1)))
		if err == nil && len(left.Items) > 0 {
			err = errors.New("there are still pods")
		}
		return err
	})
}

// seeDeployment: the effect is there when the pods are of the current template, available, and as many as wanted.
func seeDeployment(t *tracker, obj informer.Object, gone bool) {
	d := obj.(*appsv1.Deployment)
	s, want := d.Status, ptr.Deref(d.Spec.Replicas, 1)
	complete := s.ObservedGeneration >= d.Generation && s.Replicas == want && s.UpdatedReplicas == want &&
		s.AvailableReplicas == want
	if !gone {
		t.see(d.Name, d.Labels[stepLabel], "", complete)
	}
}

// RunKubelet binds the pods and reports them as ready, until ctx is done.
func RunKubelet(ctx context.Context, config *rest.Config, o kubelet.Options) error {
	m, err := manager.New(config, manager.Options{})
	if err != nil {
		return err
	}
	k, err := kubelet.New(m.GetClient(), m.Informers(), o)
	if err != nil {
		return err
	}
	if err := m.Add(k); err != nil {
		return err
	}
	return m.Run(ctx)
}
