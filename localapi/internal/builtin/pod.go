package builtin

import (
	"fmt"
	"strconv"
	"time"

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
	d.PrepareUpdate = carry(func(pod, old *corev1.Pod) {
		pod.Status = old.Status
		if pod.Spec.Resources == nil {
			pod.Spec.Resources = old.Spec.Resources.DeepCopy() // the client may not know this field
		}
		bumpPodGeneration(pod, old)
	})
	d.PrepareStatusUpdate = carry(preparePodStatus)
	d.StatusResets = []fieldpath.Path{
		fieldpath.MakePathOrDie("metadata", "deletionTimestamp"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	}
	d.Validate = rules(validatePod)
	d.ValidateUpdate = updateRules(validatePodUpdate)
	d.ValidateStatusUpdate = updateRules(validatePodStatus)
	d.Grace = podGrace
	d.Fields = selectable(podFields)
	printed(d, podRow)
	d.RowConditions = podRowConditions
	d.Subresources = podSubresources()
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/strategy.go PrepareForCreate.
func preparePod(pod *corev1.Pod) {
	pod.Generation = 1
	defaultPodResources(&pod.Spec)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: podQOS(&pod.Spec)}
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
}

func bumpPodGeneration(pod, old *corev1.Pod) {
	if !equality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		pod.Generation = old.Generation + 1
	}
}

// preparePodStatus keeps from old what a kubelet may not change, or would lose because it does not know it.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/strategy.go podStatusStrategy.
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
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/strategy.go CheckGracefulDelete.
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

// podRowConditions report that a pod has ended.
func podRowConditions(obj runtime.Object) []metav1.TableRowCondition {
	var message string
	phase := obj.(*corev1.Pod).Status.Phase
	switch phase {
	case corev1.PodSucceeded:
		message = "The pod has completed successfully."
	case corev1.PodFailed:
		message = "The pod failed."
	default:
		return nil
	}
	return []metav1.TableRowCondition{
		{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(phase), Message: message},
	}
}

func podRow(pod *corev1.Pod, now time.Time) []cell {
	s := summarize(pod)
	restarts := strconv.Itoa(s.restarts)
	if s.restarts != 0 && !s.lastRestart.IsZero() {
		restarts = fmt.Sprintf("%d (%s ago)", s.restarts, resource.Age(s.lastRestart, now))
	}
	ip := ""
	if len(pod.Status.PodIPs) > 0 {
		ip = pod.Status.PodIPs[0].IP
	}
	spec, status := corev1.PodSpec{}.SwaggerDoc(), corev1.PodStatus{}.SwaggerDoc()
	return []cell{
		nameColumn(pod.Name),
		column("Ready", "string", "The aggregate readiness state of this pod for accepting traffic.",
			fmt.Sprintf("%d/%d", s.ready, s.total)),
		column("Status", "string", "The aggregate status of the containers in this pod.", s.reason),
		column("Restarts", "string", "The number of times the containers in this pod have been restarted and when "+
			"the last container in this pod has restarted.", restarts),
		ageColumn(pod.CreationTimestamp, now),
		wideColumn("IP", "string", status["podIP"], orNone(ip)),
		wideColumn("Node", "string", spec["nodeName"], orNone(pod.Spec.NodeName)),
		wideColumn("Nominated Node", "string", status["nominatedNodeName"], orNone(pod.Status.NominatedNodeName)),
		wideColumn("Readiness Gates", "string", spec["readinessGates"], readinessGates(pod)),
	}
}

func readinessGates(pod *corev1.Pod) string {
	if len(pod.Spec.ReadinessGates) == 0 {
		return "<none>"
	}
	met := 0
	for _, g := range pod.Spec.ReadinessGates {
		if podConditionTrue(pod, g.ConditionType) {
			met++
		}
	}
	return fmt.Sprintf("%d/%d", met, len(pod.Spec.ReadinessGates))
}

// podSummary is the summary of a pod's containers in one line of "kubectl get pods".
type podSummary struct {
	ready, total int
	restarts     int
	lastRestart  metav1.Time
	reason       string
}

// summarize derives the STATUS of a pod from its containers. The first init container that has not done its work
// decides; if there is none, the first regular container that waits or has ended; otherwise the phase.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/printers/internalversion/printers.go printPod.
func summarize(pod *corev1.Pod) podSummary {
	s := podSummary{total: len(pod.Spec.Containers), reason: string(pod.Status.Phase)}
	if pod.Status.Reason != "" {
		s.reason = pod.Status.Reason
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := podSummary{}
	initializing := s.addInit(pod, &sidecars)
	if !initializing || podConditionTrue(pod, corev1.PodInitialized) {
		s.restarts, s.lastRestart = sidecars.restarts, sidecars.lastRestart
		s.addRegular(pod)
	}
	switch {
	case pod.DeletionTimestamp == nil:
	case pod.Status.Reason == "NodeLost":
		s.reason = "Unknown"
	case pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
		s.reason = "Terminating"
	}
	return s
}

// addInit counts the init containers and reports whether one of them still has work to do. Restarts of sidecars are
// also counted in sidecars, because only these are shown once the pod is initialized.
func (s *podSummary) addInit(pod *corev1.Pod, sidecars *podSummary) bool {
	isSidecarName := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; isSidecar(c) {
			isSidecarName[c.Name] = true
			s.total++
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		s.addRestarts(c)
		if isSidecarName[c.Name] {
			sidecars.addRestarts(c)
		}
		switch {
		case c.State.Terminated != nil && c.State.Terminated.ExitCode == 0:
			continue
		case isSidecarName[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case c.State.Terminated != nil:
			s.reason = "Init:" + terminatedReason(c.State.Terminated)
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			s.reason = "Init:" + c.State.Waiting.Reason
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		return true
	}
	return false
}

func (s *podSummary) addRegular(pod *corev1.Pod) {
	running, failure := false, ""
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &pod.Status.ContainerStatuses[i]
		s.addRestarts(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.reason = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.reason = terminatedReason(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failure = s.reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason != "Completed" {
		return
	}
	switch {
	case running && podConditionTrue(pod, corev1.PodReady):
		s.reason = "Running"
	case failure != "":
		s.reason = failure
	case running:
		s.reason = "NotReady"
	}
}

func (s *podSummary) addRestarts(c *corev1.ContainerStatus) {
	s.restarts += int(c.RestartCount)
	if t := c.LastTerminationState.Terminated; t != nil && s.lastRestart.Before(&t.FinishedAt) {
		s.lastRestart = t.FinishedAt
	}
}

func terminatedReason(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	default:
		return fmt.Sprintf("ExitCode:%d", t.ExitCode)
	}
}

func podConditionTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}
