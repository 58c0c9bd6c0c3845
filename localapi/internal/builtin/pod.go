package builtin

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func pod() *resource.Definition {
	d := namespaced[corev1.Pod, corev1.PodList](corev1.SchemeGroupVersion, "pods", "po")
	d.Categories = []string{"all"}
	withStatus(d)
	d.DeleteReturnsObject = true
	d.Default = mutate(defaultPod)
	d.PrepareCreate = prepare(preparePod)
	d.PrepareUpdate = carry(preparePodUpdate)
	d.PrepareStatusUpdate = carry(preparePodStatus)
	d.StatusResets = []fieldpath.Path{
		fieldpath.MakePathOrDie("metadata", "deletionTimestamp"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	}
	d.Validate = check(validatePod)
	d.ValidateUpdate = compare(validatePodUpdate)
	d.ValidateStatusUpdate = compare(validatePodStatus)
	d.Grace = podGrace
	d.Fields = selectable(podFields)
	printed(d, podRow)
	d.RowConditions = podRowConditions
	d.Subresources = podSubresources()
	return d
}

// preparePod does to a new Pod what admission and then the Pod's strategy do.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/core/pod/strategy.go PrepareForCreate;
// plugin/pkg/admission/serviceaccount, priority, defaulttolerationseconds.
func preparePod(pod *corev1.Pod) {
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = "default"
		pod.Spec.DeprecatedServiceAccount = "default"
	}
	setDefaultPtr(&pod.Spec.Priority, builtinPriority(pod.Spec.PriorityClassName))
	setDefaultPtr(&pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority)
	addDefaultTolerations(&pod.Spec)

	pod.Generation = 1
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: podQOS(&pod.Spec)}
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
}

// builtinPriority returns the value of one of the two priority classes that every cluster has, or of no class.
func builtinPriority(class string) int32 {
	for _, c := range SystemPriorityClasses() {
		if c.Name == class {
			return c.Value
		}
	}
	return 0
}

// addDefaultTolerations lets a pod stay on an unreachable node for five minutes.
//
// Source: k8s.io/kubernetes v1.37.1 plugin/pkg/admission/defaulttolerationseconds/admission.go.
func addDefaultTolerations(spec *corev1.PodSpec) {
	const fiveMinutes = 5 * 60
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !toleratesEviction(spec.Tolerations, taint) {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: ptr.To[int64](fiveMinutes),
			})
		}
	}
}

func toleratesEviction(tolerations []corev1.Toleration, taint string) bool {
	for i := range tolerations {
		t := &tolerations[i]
		if (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}

func preparePodUpdate(pod, old *corev1.Pod) {
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = old.Spec.Priority
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
	}
	addDefaultTolerations(&pod.Spec)
	pod.Status = old.Status
	bumpPodGeneration(pod, old)
}

func bumpPodGeneration(pod, old *corev1.Pod) {
	if !equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		pod.Generation = old.Generation + 1
	}
}

// preparePodStatus keeps from old what a kubelet may not change, or would lose because it does not know it.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/core/pod/strategy.go podStatusStrategy.
func preparePodStatus(pod, old *corev1.Pod) {
	pod.Spec = old.Spec
	pod.DeletionTimestamp = old.DeletionTimestamp
	pod.OwnerReferences = old.OwnerReferences
	setDefault(&pod.Status.QOSClass, old.Status.QOSClass)
	setDefault(&pod.Status.ObservedGeneration, old.Status.ObservedGeneration)
	if pod.Status.ResourceClaimStatuses == nil {
		pod.Status.ResourceClaimStatuses = old.Status.ResourceClaimStatuses
	}
	observed := map[corev1.PodConditionType][]int64{}
	for _, c := range old.Status.Conditions {
		observed[c.Type] = append(observed[c.Type], c.ObservedGeneration)
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if before := observed[c.Type]; len(before) > 0 {
			observed[c.Type] = before[1:]
			setDefault(&c.ObservedGeneration, before[0])
		}
	}
}

// podGrace returns how long a deleted pod stays so that its kubelet can stop it. It is zero if no kubelet has the pod
// or nothing runs.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/core/pod/strategy.go CheckGracefulDelete.
func podGrace(obj runtime.Object, o *metav1.DeleteOptions) int64 {
	pod := obj.(*corev1.Pod)
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return 0
	}
	period := ptr.Deref(o.GracePeriodSeconds, ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0))
	if period < 0 {
		return 1
	}
	return period
}

func podFields(pod *corev1.Pod) fields.Set {
	ip := ""
	if len(pod.Status.PodIPs) > 0 {
		ip = pod.Status.PodIPs[0].IP
	}
	return fields.Set{
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             ip,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
		"spec.host":                pod.Spec.NodeName, // the name that clients before v1 used
	}
}
