package builtin

import (
	"context"
	"fmt"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func podSubresources() map[string]resource.Subresource {
	all := podConnections()
	all["binding"] = podBinding()
	all["eviction"] = podEviction()
	all["ephemeralcontainers"] = podEphemeralContainers()
	return all
}

// podBinding is the subresource with which a scheduler assigns a pod to a node.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/storage/storage.go BindingREST.
func podBinding() resource.Subresource {
	return resource.Subresource{
		Kind:  corev1.SchemeGroupVersion.WithKind("Binding"),
		New:   func() runtime.Object { return &corev1.Binding{} },
		Verbs: []string{"create"},
		Merge: func(_ context.Context, obj, sub runtime.Object) error {
			return bindPod(obj.(*corev1.Pod), sub.(*corev1.Binding))
		},
		Unmanaged: true,
		Validate:  func(_, _ runtime.Object) field.ErrorList { return nil }, // bindPod validates; nothing else changes
	}
}

// bindings are the bindings of pods that the body names.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/storage/storage.go LegacyBindingREST.
func bindings() *resource.Definition {
	return &resource.Definition{
		GroupVersion: corev1.SchemeGroupVersion, Kind: "Binding", Plural: "bindings", Singular: "binding",
		Namespaced: true, Creates: "pods/binding",
		New:     func() runtime.Object { return &corev1.Binding{} },
		NewList: func() runtime.Object { return &metav1.List{} }, // bindings are never listed
	}
}

func bindPod(pod *corev1.Pod, b *corev1.Binding) error {
	if b.Name != pod.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if errs := rules(validateBinding)(b); len(errs) > 0 {
		// A plain 500 rather than a 422: the real server does not wrap this error.
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: errs.ToAggregate().Error(),
		}}
	}
	resourceName := schema.GroupResource{Resource: "pods/binding"}
	if err := checkPreconditions(pod, b.UID, b.ResourceVersion); err != nil {
		err = fmt.Errorf(
			"StorageError: invalid object, Code: 4, Key: /registry/pods/%s/%s, ResourceVersion: 0, "+
				"AdditionalErrorMsg: %w", pod.Namespace, pod.Name, err,
		)
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, err)
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return apierrors.NewConflict(resourceName, pod.Name,
			fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name))
	case pod.Spec.NodeName != "":
		return apierrors.NewConflict(resourceName, pod.Name,
			fmt.Errorf("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName))
	case len(pod.Spec.SchedulingGates) > 0:
		return apierrors.NewConflict(resourceName, pod.Name,
			fmt.Errorf("pod %v has non-empty .spec.schedulingGates", pod.Name))
	}
	pod.Spec.NodeName = b.Target.Name
	pod.Status.NominatedNodeName = ""
	pod.Annotations = merged(pod.Annotations, b.Annotations)
	pod.Labels = merged(pod.Labels, b.Labels)
	setPodCondition(&pod.Status, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	return nil
}

func validateBinding(f verify.Field, b *corev1.Binding) {
	if k := b.Target.Kind; k != "" && k != "Node" {
		verify.Supported(f, "target.kind", k, "Node", "<empty>")
		return
	}
	f.RequireMatch("target.name", b.Target.Name, validation.IsDNS1123Subdomain)
}

// setPodCondition sets a condition. If its status does not change, neither does the time of its transition.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/api/pod/util.go UpdatePodCondition.
func setPodCondition(s *corev1.PodStatus, condition corev1.PodCondition) {
	condition.LastTransitionTime = metav1.Now()
	for i := range s.Conditions {
		if old := &s.Conditions[i]; old.Type == condition.Type {
			if old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
			*old = condition
			return
		}
	}
	s.Conditions = append(s.Conditions, condition)
}

// podEphemeralContainers lets "kubectl debug" add containers to a running pod. Nothing else of the pod changes,
// although the client becomes an owner of what it tried to change: the real server has a filter for these writes, but
// does not use it.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/strategy.go podEphemeralContainersStrategy.
func podEphemeralContainers() resource.Subresource {
	return resource.Subresource{
		Kind:    corev1.SchemeGroupVersion.WithKind("Pod"),
		New:     func() runtime.Object { return &corev1.Pod{} },
		Verbs:   []string{"get", "patch", "update"},
		Project: func(_ context.Context, obj runtime.Object) (runtime.Object, error) { return obj, nil },
		Merge: func(_ context.Context, obj, sub runtime.Object) error {
			pod, asked := obj.(*corev1.Pod), sub.(*corev1.Pod)
			old := pod.DeepCopy()
			pod.Spec.EphemeralContainers = asked.Spec.EphemeralContainers
			pod.ResourceVersion = asked.ResourceVersion
			defaultPod(pod)
			bumpPodGeneration(pod, old)
			return nil
		},
		Validate: updateRules(validateEphemeralUpdate),
	}
}

// validateEphemeralUpdate checks that ephemeral containers are only added.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidatePodEphemeralContainersUpdate.
func validateEphemeralUpdate(f verify.Field, pod, old *corev1.Pod) {
	validatePodSpec(f.Child("spec"), &pod.Spec)
	now := map[string]*corev1.EphemeralContainer{}
	for i := range pod.Spec.EphemeralContainers {
		now[pod.Spec.EphemeralContainers[i].Name] = &pod.Spec.EphemeralContainers[i]
	}
	for i := range old.Spec.EphemeralContainers {
		was := &old.Spec.EphemeralContainers[i]
		existing := fmt.Sprintf("existing ephemeral containers %q may not be ", was.Name)
		if c := now[was.Name]; c == nil {
			f.Forbid("spec.ephemeralContainers", true, existing+"removed\n")
		} else if !equality.Semantic.DeepEqual(c, was) {
			f.Forbid("spec.ephemeralContainers", true, existing+"changed\n"+shownDiff(*was, *c))
		}
	}
}

// merged returns base with add's entries on top, or base itself if there are none.
func merged(base, add map[string]string) map[string]string {
	if len(add) == 0 {
		return base
	}
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, add)
	return out
}

// nothingRuns ends every error about something that needs a running container.
const nothingRuns = "this embedded API server runs no containers. " +
	"Run the program by itself, or use a cluster that runs containers (kind, for example)"

// podConnections are the subresources that lead to the containers of a pod, of which there are none.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/rest/subresources.go, log.go.
func podConnections() map[string]resource.Subresource {
	return map[string]resource.Subresource{
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
		"attach":      connection[corev1.PodAttachOptions]("cannot be attached to"),
		"exec":        connection[corev1.PodExecOptions]("cannot run a command"),
		"portforward": connection[corev1.PodPortForwardOptions]("has no ports to forward to"),
	}
}

// connection is a connection to a pod's container, with the options T. what completes "pod web".
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/rest/authorize.go.
func connection[T any, P pointerTo[T]](what string) resource.Subresource {
	s := proxy[T, P](func(obj runtime.Object) error { return notRunning(obj, what) })
	s.Verbs, s.ConnectNeedsCreate = []string{"create", "get"}, true
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
