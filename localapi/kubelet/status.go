package kubelet

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/flyball-dev/flyball/localapi/internal/restart"
)

// stage is how far a bound pod has come.
type stage int

const (
	creating  stage = iota // its sandbox is being set up; no container runs
	pulling                // containers run if their image could be pulled; the others have just failed
	backedOff              // the same, a while later
)

// reached returns the stage that a pod's status shows.
func reached(pod *corev1.Pod) stage {
	switch {
	case pod.Status.PodIP == "":
		return creating
	case pullFailureOf(pod) == reasonBackOff:
		return backedOff
	default:
		return pulling
	}
}

const (
	reasonPull    = "ErrImagePull"
	reasonBackOff = "ImagePullBackOff"

	reasonCompleted = "PodCompleted"
)

// pullFailureOf returns the reason of a container that waits because its image could not be pulled, or "" if there is
// none. If there are several, ImagePullBackOff wins.
func pullFailureOf(pod *corev1.Pod) string {
	found := ""
	for _, cs := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := cs.State.Waiting; w != nil && (w.Reason == reasonBackOff || (w.Reason == reasonPull && found == "")) {
			found = w.Reason
		}
	}
	return found
}

// situation is what a pod's status is computed from, besides the pod itself.
type situation struct {
	stage  stage
	hostIP string
	podIPs []string // empty while creating
	now    metav1.Time
	// message and reason are those of the pod. Empty keeps the present ones.
	message, reason string
	ending          ending
	// problem is what is wrong with the annotations that say how containers end. No container starts until it is empty.
	problem string
	// over holds the containers that have been in their present state for as long as it lasts.
	over map[string]bool
	// killed means that all containers are stopped, and none is started any more.
	killed bool
}

// wantedStatus returns the status that a kubelet reports for a pod. It keeps what the kubelet does not own: fields and
// conditions of others, restart counts, and the times of what has not changed.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/kubelet_pods.go, generateAPIPodStatus
func wantedStatus(pod *corev1.Pod, s situation) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	status.ObservedGeneration = pod.Generation
	if status.StartTime == nil {
		status.StartTime = &s.now
	}
	status.Message, status.Reason = cmp.Or(s.message, status.Message), cmp.Or(s.reason, status.Reason)
	status.HostIP, status.HostIPs = s.hostIP, []corev1.HostIP{{IP: s.hostIP}}
	if s.stage != creating {
		status.PodIP, status.PodIPs = s.podIPs[0], nil
		for _, ip := range s.podIPs {
			status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip})
		}
	}
	// Once a container has started, the pod stays initialized. Its sidecars may end.
	initialized, started := true, slices.ContainsFunc(pod.Status.ContainerStatuses, hasStarted)
	status.InitContainerStatuses = nil
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		cs := containerStatus(pod, c, pod.Status.InitContainerStatuses, s, initialized)
		status.InitContainerStatuses = append(status.InitContainerStatuses, cs)
		initialized = initialized && (started || hasDoneItsPart(c, &cs))
	}
	status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses,
			containerStatus(pod, &pod.Spec.Containers[i], pod.Status.ContainerStatuses, s, initialized))
	}
	status.Phase = phase(pod, &status, initialized, s.killed)
	status.Conditions = conditions(pod, &status, s)
	return status
}

// phase returns the phase of a pod with these container statuses.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/kubelet_pods.go, getPhase
func phase(pod *corev1.Pod, status *corev1.PodStatus, initialized, killed bool) corev1.PodPhase {
	running := slices.ContainsFunc(status.InitContainerStatuses, isRunning)
	waiting, failed := !initialized, false
	for i := range status.ContainerStatuses {
		cs := &status.ContainerStatuses[i]
		last := lastEnd(cs)
		switch {
		case isRunning(*cs):
			running = true
		case last == nil:
			waiting = true
		default:
			running = running || !killed && restart.Allowed(&pod.Spec, &pod.Spec.Containers[i], last.ExitCode)
			failed = failed || last.ExitCode != 0
		}
	}
	switch {
	case waiting && !killed:
		return corev1.PodPending
	case running:
		return corev1.PodRunning
	case waiting || failed:
		return corev1.PodFailed
	default:
		return corev1.PodSucceeded
	}
}

func isRunning(cs corev1.ContainerStatus) bool { return cs.State.Running != nil }

func hasStarted(cs corev1.ContainerStatus) bool { return isRunning(cs) || lastEnd(&cs) != nil }

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// hasDoneItsPart reports whether the init container allows the next ones to start.
func hasDoneItsPart(c *corev1.Container, cs *corev1.ContainerStatus) bool {
	if isSidecar(c) {
		return cs.State.Running != nil
	}
	return cs.State.Terminated != nil
}

// containerStatus returns the status of one container. mayStart reports whether all containers before it have done
// their part.
func containerStatus(pod *corev1.Pod, c *corev1.Container, old []corev1.ContainerStatus, s situation,
	mayStart bool,
) corev1.ContainerStatus {
	cs := statusOf(old, c.Name)
	cs.Image = c.Image
	isInit := slices.ContainsFunc(pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
	exitCode := s.ending.code
	if isInit {
		exitCode = 0
	}
	waits := func(reason, message string) {
		no := false
		cs.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
		cs.Ready, cs.Started, cs.ContainerID, cs.ImageID = false, &no, "", ""
	}
	last := lastEnd(&cs)
	switch {
	case s.killed:
		if cs.State.Running != nil {
			end(&cs, 128+9, s.now)
		}
	case cs.State.Running != nil && s.over[c.Name]:
		end(&cs, exitCode, s.now)
	case cs.State.Running != nil && pullable(c.Image): // goes on running
	case last != nil && (isInit || !restart.Allowed(&pod.Spec, c, last.ExitCode)): // has finished
	case last != nil && s.over[c.Name]:
		cs.RestartCount++
		cs.LastTerminationState.Terminated = last
		run(pod, c, &cs, s.now, isInit)
	case last != nil:
		// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/kuberuntime/kuberuntime_manager.go, doBackOff
		cs.LastTerminationState.Terminated = last
		cs.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff",
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
				backOff(cs.RestartCount, last), c.Name, pod.Name, pod.Namespace, pod.UID),
		}}
	case (!mayStart || s.stage == creating) && len(pod.Spec.InitContainers) > 0:
		waits("PodInitializing", "")
	case s.stage == creating:
		waits("ContainerCreating", "")
	case !pullable(c.Image):
		waits(pullFailure(c.Image, s.stage))
	case s.problem != "":
		waits("CreateContainerConfigError", s.problem)
	default:
		run(pod, c, &cs, s.now, isInit)
	}
	return cs
}

// statusOf returns a copy of the status of a container, or an empty one.
func statusOf(list []corev1.ContainerStatus, name string) corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return *list[i].DeepCopy()
		}
	}
	return corev1.ContainerStatus{Name: name}
}

// run marks the container as started, and as finished if it is an init container.
func run(pod *corev1.Pod, c *corev1.Container, cs *corev1.ContainerStatus, now metav1.Time, isInit bool) {
	yes, no := true, false
	cs.ContainerID = "containerd://" + digest(string(pod.UID), c.Name, strconv.Itoa(int(cs.RestartCount)))
	cs.ImageID = c.Image + "@sha256:" + digest(c.Image)
	cs.Ready = true
	if isInit && !isSidecar(c) {
		cs.Started = &no
		cs.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: now, FinishedAt: now, ContainerID: cs.ContainerID,
		}}
		return
	}
	cs.Started = &yes
	cs.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/images/image_manager.go
func pullFailure(image string, s stage) (reason, message string) {
	cause := fmt.Sprintf("failed to pull and unpack image %q: not found", image)
	if s == backedOff {
		return reasonBackOff, fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", image, cause)
	}
	return reasonPull, cause
}

// conditions returns all conditions of the pod: first those of others, then the kubelet's own, in its order.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/kubelet_pods.go, generateAPIPodStatus, and
// pkg/kubelet/status/generate.go
func conditions(pod *corev1.Pod, status *corev1.PodStatus, s situation) []corev1.PodCondition {
	own := []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, s.stage != creating && status.Phase != corev1.PodSucceeded &&
			status.Phase != corev1.PodFailed, "", ""),
		initializedCondition(pod, status),
		{}, // Ready, below
		containersReadyCondition(pod, status),
		condition(corev1.PodScheduled, true, "", ""),
	}
	own[2] = readyCondition(pod, own[3])
	var all []corev1.PodCondition
	for _, c := range pod.Status.Conditions {
		if !slices.ContainsFunc(own, func(o corev1.PodCondition) bool { return o.Type == c.Type }) {
			all = append(all, c)
		}
	}
	for _, c := range own {
		c.ObservedGeneration = pod.Generation
		c.LastTransitionTime = s.now
		if old := findCondition(pod, c.Type); old != nil && old.Status == c.Status && !old.LastTransitionTime.IsZero() {
			c.LastTransitionTime = old.LastTransitionTime
		}
		all = append(all, c)
	}
	return all
}

func condition(t corev1.PodConditionType, is bool, reason, message string) corev1.PodCondition {
	if is {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

func initializedCondition(pod *corev1.Pod, status *corev1.PodStatus) corev1.PodCondition {
	if status.Phase == corev1.PodSucceeded {
		return corev1.PodCondition{
			Type: corev1.PodInitialized, Status: corev1.ConditionTrue, Reason: reasonCompleted,
		}
	}
	if slices.ContainsFunc(status.ContainerStatuses, hasStarted) {
		return condition(corev1.PodInitialized, true, "", "")
	}
	var incomplete []string
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; !hasDoneItsPart(c, &status.InitContainerStatuses[i]) {
			incomplete = append(incomplete, c.Name)
		}
	}
	return condition(corev1.PodInitialized, len(incomplete) == 0, "ContainersNotInitialized",
		fmt.Sprintf("containers with incomplete status: %s", incomplete))
}

func containersReadyCondition(pod *corev1.Pod, status *corev1.PodStatus) corev1.PodCondition {
	switch status.Phase {
	case corev1.PodSucceeded:
		return condition(corev1.ContainersReady, false, reasonCompleted, "")
	case corev1.PodFailed:
		return condition(corev1.ContainersReady, false, "PodFailed", "")
	}
	var unready []string
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; isSidecar(c) && !status.InitContainerStatuses[i].Ready {
			unready = append(unready, c.Name)
		}
	}
	for _, cs := range status.ContainerStatuses {
		if !cs.Ready {
			unready = append(unready, cs.Name)
		}
	}
	return condition(corev1.ContainersReady, len(unready) == 0, "ContainersNotReady",
		fmt.Sprintf("containers with unready status: %s", unready))
}

// readyCondition returns the condition Ready. It follows the containers' readiness, unless a readiness gate is not
// satisfied.
func readyCondition(pod *corev1.Pod, containers corev1.PodCondition) corev1.PodCondition {
	if containers.Status != corev1.ConditionTrue {
		containers.Type = corev1.PodReady
		return containers
	}
	var closed []string
	for _, gate := range pod.Spec.ReadinessGates {
		switch c := findCondition(pod, gate.ConditionType); {
		case c == nil:
			closed = append(closed,
				fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			closed = append(closed,
				fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType,
					c.Status))
		}
	}
	return condition(corev1.PodReady, len(closed) == 0, "ReadinessGatesNotReady", strings.Join(closed, ", "))
}

func findCondition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// digest returns 64 hexadecimal digits that depend only on parts.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

func itoa(n int) string { return strconv.Itoa(n) }

// statusPatch returns the strategic merge patch that changes a pod's status from its present one to status. It names
// the UID, so that it cannot change another pod of the same name.
func statusPatch(pod *corev1.Pod, status corev1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(corev1.Pod{Status: pod.Status})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: status})
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
}
