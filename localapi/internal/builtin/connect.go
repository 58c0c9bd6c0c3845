package builtin

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// nothingRuns ends every error about something that needs a running container.
const nothingRuns = "this embedded API server runs no containers. " +
	"Run the program by itself, or use a cluster that runs containers (kind, for example)"

// podConnections are the subresources that lead to the containers of a pod, of which there are none.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/core/pod/rest/subresources.go, log.go.
func podConnections() map[string]resource.Subresource {
	all := map[string]resource.Subresource{
		"log": {
			Kind:  corev1.SchemeGroupVersion.WithKind("Pod"),
			New:   func() runtime.Object { return &corev1.Pod{} },
			Verbs: []string{"get"},
			Project: func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
				return nil, notRunning(obj, "has no logs")
			},
		},
		"proxy": proxy[corev1.PodProxyOptions](func(obj runtime.Object) error {
			return notRunning(obj, "cannot be reached")
		}),
	}
	maps.Copy(all, map[string]resource.Subresource{
		"attach":      connection[corev1.PodAttachOptions]("cannot be attached to"),
		"exec":        connection[corev1.PodExecOptions]("cannot run a command"),
		"portforward": connection[corev1.PodPortForwardOptions]("has no ports to forward to"),
	})
	return all
}

// connection is a connection to a pod's container, with the options T. what completes "pod web".
func connection[T any, P pointerTo[T]](what string) resource.Subresource {
	s := proxy[T, P](func(obj runtime.Object) error { return notRunning(obj, what) })
	s.Verbs = []string{"create", "get"}
	return s
}

// proxy is a connection with all methods, whose requests a real server would pass on.
func proxy[T any, P pointerTo[T]](refuse func(obj runtime.Object) error) resource.Subresource {
	return resource.Subresource{
		Kind:    corev1.SchemeGroupVersion.WithKind(kindOf[T]()),
		New:     func() runtime.Object { return P(new(T)) },
		Verbs:   []string{"create", "delete", "get", "patch", "update"},
		Connect: refuse,
	}
}

// notRunning returns the error for what needs a container of a pod.
func notRunning(obj runtime.Object, what string) error {
	pod := obj.(*corev1.Pod)
	if pod.Spec.NodeName == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("pod %s %s: %s", pod.Name, what, nothingRuns))
}

// nodeProxy and serviceProxy would lead to a kubelet, and to the pods of a Service.
func nodeProxy() resource.Subresource {
	return proxy[corev1.NodeProxyOptions](func(obj runtime.Object) error {
		return apierrors.NewBadRequest(fmt.Sprintf("node %s cannot be reached: no kubelet listens there, and %s",
			obj.(*corev1.Node).Name, nothingRuns))
	})
}

func serviceProxy() resource.Subresource {
	return proxy[corev1.ServiceProxyOptions](func(obj runtime.Object) error {
		return apierrors.NewBadRequest(fmt.Sprintf("service %s cannot be reached: %s", obj.(*corev1.Service).Name,
			nothingRuns))
	})
}
