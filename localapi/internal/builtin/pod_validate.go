package builtin

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePod validates a whole Pod.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go validatePodMetadataAndSpec,
// ValidatePodCreate.
func validatePod(pod *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	errs := validatePodSpec(&pod.Spec, path)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		errs = append(errs, nonnegative(*s, path.Child("terminationGracePeriodSeconds"))...)
	}
	errs = append(errs, trimmedImages(pod.Spec.Containers, path.Child("containers"))...)
	errs = append(errs, trimmedImages(pod.Spec.InitContainers, path.Child("initContainers"))...)
	if pod.ResourceVersion == "" && len(pod.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("ephemeralContainers"), "cannot be set on create"))
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		errs = append(errs,
			field.Forbidden(path.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"))
	}
	return errs
}

func trimmedImages(containers []corev1.Container, path *field.Path) (errs field.ErrorList) {
	for i := range containers {
		if image := containers[i].Image; image != strings.TrimSpace(image) {
			errs = append(errs,
				field.Invalid(path.Index(i).Child("image"), image, "must not have leading or trailing whitespace"))
		}
	}
	return errs
}

// updatablePodSpec ends the error message for any other change. Users search for its exact words.
const updatablePodSpec = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations)," +
	"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// validatePodUpdate validates what an update changes. A pod's spec is almost immutable.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidatePodUpdate.
func validatePodUpdate(pod, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	for _, list := range []struct {
		name     string
		now, was int
	}{
		{"containers", len(pod.Spec.Containers), len(old.Spec.Containers)},
		{"initContainers", len(pod.Spec.InitContainers), len(old.Spec.InitContainers)},
	} {
		if list.now != list.was {
			return field.ErrorList{
				field.Forbidden(path.Child(list.name), "pod updates may not add or remove containers"),
			}
		}
	}
	errs, stop := validateDeadlineUpdate(pod.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds,
		path.Child("activeDeadlineSeconds"))
	if stop {
		return errs
	}
	errs = append(errs, onlyAddedTolerations(pod.Spec.Tolerations, old.Spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs,
		onlyRemovedGates(pod.Spec.SchedulingGates, old.Spec.SchedulingGates, path.Child("schedulingGates"))...)
	if equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		return errs
	}
	masked, selectorErrs := maskUpdatable(&pod.Spec, &old.Spec, path)
	errs = append(errs, selectorErrs...)
	if !equality.Semantic.DeepEqual(*masked, old.Spec) {
		errs = append(errs, field.Forbidden(path,
			fmt.Sprintf("pod updates may not change fields other than %s\n%v", updatablePodSpec,
				shownDiff(old.Spec, *masked))))
	}
	return errs
}

// maskUpdatable returns spec with every field that an update may change set back to old's value.
func maskUpdatable(spec, old *corev1.PodSpec, path *field.Path) (*corev1.PodSpec, field.ErrorList) {
	var errs field.ErrorList
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
				errs = append(errs, field.Invalid(path.Child("nodeSelector"), m.NodeSelector,
					"only additions to spec.nodeSelector are allowed (no mutations or deletions)"))
				break
			}
		}
		m.NodeSelector = old.NodeSelector
	}
	return m, errs
}

func validateDeadlineUpdate(now, was *int64, path *field.Path) (errs field.ErrorList, stop bool) {
	switch {
	case now == nil && was == nil:
		return nil, false
	case now == nil:
		return field.ErrorList{field.Invalid(path, now, "must not update from a positive integer to nil value")}, false
	case *now < 0 || *now > math.MaxInt32:
		return field.ErrorList{field.Invalid(path, *now, validation.InclusiveRangeError(0, math.MaxInt32))}, true
	case was != nil && *was < *now:
		return field.ErrorList{field.Invalid(path, *now, "must be less than or equal to previous value")}, true
	}
	return nil, false
}

func onlyAddedTolerations(list, old []corev1.Toleration, path *field.Path) field.ErrorList {
	for _, o := range old {
		found := false
		for _, t := range list {
			o.TolerationSeconds = t.TolerationSeconds
			if found = equality.Semantic.DeepEqual(o, t); found {
				break
			}
		}
		if !found {
			return field.ErrorList{
				field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds"),
			}
		}
	}
	return nil
}

func onlyRemovedGates(list, old []corev1.PodSchedulingGate, path *field.Path) (errs field.ErrorList) {
	known := sets.New[string]()
	for _, g := range old {
		known.Insert(g.Name)
	}
	for i, g := range list {
		if !known.Has(g.Name) {
			errs = append(errs, field.Forbidden(path.Index(i).Child("name"),
				fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", g.Name)))
		}
	}
	return errs
}

// validatePodStatus validates a status write.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidatePodStatusUpdate.
func validatePodStatus(pod, old *corev1.Pod) (errs field.ErrorList) {
	path := field.NewPath("status")
	for i, c := range pod.Status.Conditions {
		switch c.Type {
		case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized:
		default:
			errs = append(errs, qualifiedName(string(c.Type), path.Child("conditions").Index(i).Child("Type"))...)
		}
	}
	if n := pod.Status.NominatedNodeName; n != "" && n != old.Status.NominatedNodeName && old.Spec.NodeName != "" {
		errs = append(errs,
			field.Forbidden(path.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node"))
	}
	errs = append(errs,
		apivalidation.ValidateImmutableField(pod.Status.QOSClass, old.Status.QOSClass, path.Child("qosClass"))...)
	errs = append(errs, staysTerminated(pod, old, path.Child("containerStatuses"))...)
	return append(errs, validatePodIPs(&pod.Status, path)...)
}

// staysTerminated rejects the restart of a container that its restart policy does not restart.
func staysTerminated(pod, old *corev1.Pod, path *field.Path) (errs field.ErrorList) {
	if old.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return nil
	}
	for i, was := range old.Status.ContainerStatuses {
		if was.State.Terminated == nil ||
			(was.State.Terminated.ExitCode != 0 && old.Spec.RestartPolicy == corev1.RestartPolicyOnFailure) {
			continue
		}
		for _, now := range pod.Status.ContainerStatuses {
			if now.Name == was.Name && now.State.Terminated == nil {
				errs = append(errs,
					field.Forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
			}
		}
	}
	return errs
}

func validatePodIPs(status *corev1.PodStatus, path *field.Path) (errs field.ErrorList) {
	families := map[bool]int{} // addresses by "is IPv6"
	for i, ip := range status.PodIPs {
		errs = append(errs, validation.IsValidIPForLegacyField(path.Child("podIPs").Index(i), ip.IP, true, nil)...)
		families[strings.Contains(ip.IP, ":")]++
	}
	if families[true] > 1 || families[false] > 1 {
		errs = append(errs, field.Invalid(path.Child("podIPs"), shown(status.PodIPs),
			"may specify no more than one IP for each IP family"))
	}
	if len(status.HostIPs) > 0 && status.HostIP != status.HostIPs[0].IP {
		errs = append(errs, field.Invalid(path.Child("hostIPs").Index(0).Child("ip"), status.HostIPs[0].IP,
			"must be equal to `hostIP`"))
	}
	return errs
}
