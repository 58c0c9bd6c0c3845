package kubelet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi/internal/restart"
)

// Annotations of a pod that make its containers end.
const (
	// AnnotationEndsAfter is how long each container of the pod runs, such as 30s, or never. The default is 1s for pods
	// of Jobs, and never for all others.
	AnnotationEndsAfter = "kubelet.flyball.dev/ends-after"
	// AnnotationExitCode is the exit code of the containers, from 0 to 255. The default is 0.
	AnnotationExitCode = "kubelet.flyball.dev/exit-code"
)

const never time.Duration = -1

// ending is when and how the containers of a pod end.
type ending struct {
	after time.Duration // or never
	code  int32
}

// endingOf returns the ending that a pod's annotations ask for. Errors: an annotation has an invalid value.
func endingOf(pod *corev1.Pod) (ending, error) {
	e := ending{after: never}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" &&
		strings.HasPrefix(owner.APIVersion, "batch/") {
		e.after = time.Second
	}
	if value, set := pod.Annotations[AnnotationEndsAfter]; set && value == "never" {
		e.after = never
	} else if set {
		after, err := time.ParseDuration(value)
		if err != nil || after < 0 {
			return ending{after: never}, fmt.Errorf("annotation %s: %q is neither a duration, such as 30s, nor never",
				AnnotationEndsAfter, value)
		}
		e.after = after
	}
	if value, set := pod.Annotations[AnnotationExitCode]; set {
		code, err := strconv.ParseUint(value, 10, 8)
		if err != nil {
			return ending{after: never}, fmt.Errorf("annotation %s: %q is not a number from 0 to 255",
				AnnotationExitCode, value)
		}
		e.code = int32(code)
	}
	return e, nil
}

// end marks a running container as ended.
func end(cs *corev1.ContainerStatus, code int32, now metav1.Time) {
	reason, no := "Completed", false
	if code != 0 {
		reason = "Error"
	}
	cs.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: cs.State.Running.StartedAt, FinishedAt: now,
		ContainerID: cs.ContainerID,
	}}
	cs.Ready, cs.Started = false, &no
}

// lastEnd returns how a container ended that does not run. It returns nil if the container runs, or never ran.
func lastEnd(cs *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if cs.State.Waiting != nil {
		return cs.LastTerminationState.Terminated
	}
	return cs.State.Terminated
}

// backOff returns how long after its end a container is started again that was restarted count times before: at once
// at first and after a run of more than ten minutes, and else after ten seconds, which are doubled up to five minutes.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/kubelet.go, newCrashLoopBackOff and its HasExpiredFunc
func backOff(count int32, last *corev1.ContainerStateTerminated) time.Duration {
	if count == 0 || last.FinishedAt.Sub(last.StartedAt.Time) > 10*time.Minute {
		return 0
	}
	return min(10*time.Second<<min(count-1, 5), 5*time.Minute)
}

// clock sets which containers have been in their present state for as long as it lasts, and whether the pod was killed
// at its deadline. It returns the time until that changes, or zero if it does not.
func (k *fake) clock(pod *corev1.Pod, s *situation) (next time.Duration) {
	now := time.Now()
	over := func(stage string, began metav1.Time, takes time.Duration) bool {
		// The time in a status is rounded down to seconds. The time in the records is not, but it begins with this
		// process.
		left := takes - max(k.records.since(pod.UID, stage, now), now.Sub(began.Time)-time.Second)
		if left > 0 && (next == 0 || left < next) {
			next = left
		}
		return left <= 0
	}
	if limit := pod.Spec.ActiveDeadlineSeconds; limit != nil && pod.Status.StartTime != nil &&
		over("deadline", *pod.Status.StartTime, time.Duration(*limit)*time.Second) {
		// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/active_deadline.go
		s.killed, s.reason = true, "DeadlineExceeded"
		s.message = "Pod was active on the node longer than the specified deadline"
		return 0
	}
	s.over = make(map[string]bool)
	ended := true
	for i := range pod.Spec.Containers {
		c, cs := &pod.Spec.Containers[i], statusOf(pod.Status.ContainerStatuses, pod.Spec.Containers[i].Name)
		run, last := c.Name+" "+itoa(int(cs.RestartCount)), lastEnd(&cs)
		switch {
		case last != nil && restart.Allowed(&pod.Spec, c, last.ExitCode):
			s.over[c.Name] = over("back-off of "+run, last.FinishedAt, backOff(cs.RestartCount, last))
			ended = false
		case last == nil:
			s.over[c.Name] = cs.State.Running != nil && s.ending.after != never &&
				over("run of "+run, cs.State.Running.StartedAt, s.ending.after)
			ended = false
		}
	}
	for i := range pod.Spec.InitContainers {
		s.over[pod.Spec.InitContainers[i].Name] = ended // sidecars run as long as the others
	}
	return next
}
