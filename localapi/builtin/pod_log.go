package builtin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/resource"
)

// podLog answers requests for a container's output, of which there is none: nothing runs containers here.
func podLog() resource.Subresource {
	return resource.Subresource{
		Kind:  corev1.SchemeGroupVersion.WithKind("Pod"),
		New:   func() runtime.Object { return &corev1.Pod{} },
		Verbs: []string{"get"},
		Project: func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
			pod := obj.(*corev1.Pod)
			if pod.Spec.NodeName == "" {
				return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
			}
			return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s has no logs: this embedded API server runs no containers", pod.Name))
		},
	}
}
