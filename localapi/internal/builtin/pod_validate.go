package builtin

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/restart"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// validatePod validates a whole Pod.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go validatePodMetadataAndSpec,
// ValidatePodCreate.
func validatePod(f verify.Field, pod *corev1.Pod) {
	f, spec := f.Child("spec"), &pod.Spec
	validatePodSpec(f, spec)
	f.Nonnegative("terminationGracePeriodSeconds", ptr.Deref(spec.TerminationGracePeriodSeconds, 0))
	verify.Each(f, "containers", spec.Containers, trimmedImage)
	verify.Each(f, "initContainers", spec.InitContainers, trimmedImage)
	f.Forbid("ephemeralContainers", pod.ResourceVersion == "" && len(spec.EphemeralContainers) > 0,
		"cannot be set on create")
	f.Forbid("nodeName", spec.NodeName != "" && len(spec.SchedulingGates) > 0,
		"cannot be set until all schedulingGates have been cleared")
}

func trimmedImage(f verify.Field, c *corev1.Container) {
	f.Reject("image", c.Image != strings.TrimSpace(c.Image), c.Image, "must not have leading or trailing whitespace")
}

// updatablePodSpec ends the error message for any other change. Users search for its exact words.
const updatablePodSpec = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// validatePodUpdate validates what an update changes. A pod's spec is almost immutable.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidatePodUpdate.
func validatePodUpdate(f verify.Field, pod, old *corev1.Pod) {
	f, now, was := f.Child("spec"), &pod.Spec, &old.Spec
	const fixed = "pod updates may not add or remove containers"
	switch {
	case len(now.Containers) != len(was.Containers):
		f.Forbid("containers", true, fixed)
		return
	case len(now.InitContainers) != len(was.InitContainers):
		f.Forbid("initContainers", true, fixed)
		return
	}
	if !validateDeadlineUpdate(f, now.ActiveDeadlineSeconds, was.ActiveDeadlineSeconds) {
		return
	}
	onlyAddedTolerations(f, now.Tolerations, was.Tolerations)
	onlyRemovedGates(f, now.SchedulingGates, was.SchedulingGates)
	if equality.Semantic.DeepEqual(now, was) {
		return
	}
	if masked := maskUpdatable(f, now, was); !equality.Semantic.DeepEqual(masked, was) {
		f.Forbid("", true, "pod updates may not change fields other than "+updatablePodSpec+"\n"+
			shownDiff(*was, *masked))
	}
}

// maskUpdatable returns spec with every field that an update may change set back to old's value.
func maskUpdatable(f verify.Field, spec, old *corev1.PodSpec) *corev1.PodSpec {
	m := spec.DeepCopy()
	for i := range m.Containers {
		m.Containers[i].Image = old.Containers[i].Image
	}
	for i := range m.InitContainers {
		m.InitContainers[i].Image = old.InitContainers[i].Image
	}
	m.ActiveDeadlineSeconds = old.ActiveDeadlineSeconds
	m.SchedulingGates = old.SchedulingGates
	m.Tolerations = old.Tolerations
	if was, now := old.TerminationGracePeriodSeconds, m.TerminationGracePeriodSeconds; was != nil && *was < 0 &&
		now != nil && *now == 1 {
		m.TerminationGracePeriodSeconds = was
	}
	if len(old.SchedulingGates) > 0 {
		for k, v := range old.NodeSelector {
			if m.NodeSelector[k] != v {
				f.Reject("nodeSelector", true, m.NodeSelector,
					"only additions to spec.nodeSelector are allowed (no mutations or deletions)")
				break
			}
		}
		m.NodeSelector = old.NodeSelector
	}
	return m
}

// validateDeadlineUpdate reports whether to go on: other errors are not reported with one about a new deadline.
func validateDeadlineUpdate(f verify.Field, now, was *int64) bool {
	if now == nil {
		f.Reject("activeDeadlineSeconds", was != nil, nil, "must not update from a positive integer to nil value")
		return true
	}
	return f.Passes(func(f verify.Field) {
		if inRange := *now >= 0 && *now <= math.MaxInt32; !inRange {
			f.Reject("activeDeadlineSeconds", true, *now, validation.InclusiveRangeError(0, math.MaxInt32))
		} else {
			f.Reject("activeDeadlineSeconds", was != nil && *was < *now, *now,
				"must be less than or equal to previous value")
		}
	})
}

func onlyAddedTolerations(f verify.Field, list, old []corev1.Toleration) {
	for _, o := range old {
		if !slices.ContainsFunc(list, func(t corev1.Toleration) bool {
			o.TolerationSeconds = t.TolerationSeconds
			return equality.Semantic.DeepEqual(o, t)
		}) {
			f.Forbid("tolerations", true, "existing toleration can not be modified except its tolerationSeconds")
			return
		}
	}
}

func onlyRemovedGates(f verify.Field, list, old []corev1.PodSchedulingGate) {
	known := sets.New[string]()
	for _, g := range old {
		known.Insert(g.Name)
	}
	verify.Each(f, "schedulingGates", list, func(f verify.Field, g *corev1.PodSchedulingGate) {
		f.Forbid("name", !known.Has(g.Name), "only deletion is allowed, but found new scheduling gate '"+g.Name+"'")
	})
}

// validatePodStatus validates a status write.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidatePodStatusUpdate.
func validatePodStatus(f verify.Field, pod, old *corev1.Pod) {
	f, now, was := f.Child("status"), &pod.Status, &old.Status
	verify.Each(f, "conditions", now.Conditions, func(f verify.Field, c *corev1.PodCondition) {
		switch c.Type {
		case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized:
		default:
			f.Match("Type", string(c.Type), validation.IsQualifiedName)
		}
	})
	nominated := now.NominatedNodeName
	f.Forbid("nominatedNodeName", nominated != "" && nominated != was.NominatedNodeName && old.Spec.NodeName != "",
		"may not be set on pods that are already bound to a node")
	f.Immutable("qosClass", now.QOSClass, was.QOSClass)
	staysTerminated(f.Child("containerStatuses"), &old.Spec, old.Spec.Containers, now.ContainerStatuses,
		was.ContainerStatuses)
	staysTerminated(f.Child("initContainerStatuses"), &old.Spec, old.Spec.InitContainers, now.InitContainerStatuses,
		was.InitContainerStatuses)
	validatePodIPs(f, now)
}

// staysTerminated rejects the restart of containers that their policies do not restart.
func staysTerminated(f verify.Field, spec *corev1.PodSpec, containers []corev1.Container,
	now, was []corev1.ContainerStatus,
) {
	if restart.AllAllowed(spec) {
		return
	}
	for i, old := range was {
		if old.State.Terminated == nil || !slices.ContainsFunc(now, func(cs corev1.ContainerStatus) bool {
			return cs.Name == old.Name && cs.State.Terminated == nil
		}) {
			continue
		}
		f.Index(i).Forbid("state", !slices.ContainsFunc(containers, func(c corev1.Container) bool {
			return c.Name == old.Name && restart.Allowed(spec, &c, old.State.Terminated.ExitCode)
		}), "may not be transitioned to non-terminated state")
	}
}

func validatePodIPs(f verify.Field, status *corev1.PodStatus) {
	families := map[bool]int{} // addresses by "is IPv6"
	for i, ip := range status.PodIPs {
		f.Add(validation.IsValidIPForLegacyField(f.Path("podIPs").Index(i), ip.IP, true, nil)...)
		families[strings.Contains(ip.IP, ":")]++
	}
	if families[true] > 1 || families[false] > 1 {
		f.Reject("podIPs", true, shown(status.PodIPs), "may specify no more than one IP for each IP family")
	}
	if len(status.HostIPs) > 0 {
		first := status.HostIPs[0].IP
		f.Reject("hostIPs[0].ip", status.HostIP != first, first, "must be equal to `hostIP`")
	}
}
