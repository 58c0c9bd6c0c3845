package controller

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/examples/operators/projects/purge"
)

// owns reports whether the control plane belongs to this Project, not to an earlier one of the same name.
func owns(p *api.Project, plane *infrastructure.ProjectControlPlane) bool {
	return plane.Labels[api.ProjectUIDLabel] == string(p.UID)
}

// answers reports whether the control plane can be used, according to its provider.
func answers(plane *infrastructure.ProjectControlPlane) bool {
	return plane.DeletionTimestamp == nil &&
		conditions.Is(plane.Status.Conditions, infrastructure.ControlPlaneReady, metav1.ConditionTrue)
}

// readiness returns the condition Ready of a Project that is not being deleted. prepared is the error of preparing a
// control plane that answers.
func readiness(p *api.Project, plane *infrastructure.ProjectControlPlane, prepared error) metav1.Condition {
	c := metav1.Condition{Type: api.Ready, Status: metav1.ConditionFalse, Reason: api.ReasonProvisioning}
	switch {
	case !owns(p, plane):
		c.Reason, c.Message = api.ReasonNameConflict,
			"There is still the control plane of an earlier project of this name."
	case !answers(plane):
		c.Message = "The control plane is not ready."
	case prepared != nil:
		c.Message = "The control plane cannot be prepared yet."
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, api.ReasonReady, "The control plane can be used."
	}
	return c
}

// sight is the observed control plane of a Project that is being deleted.
type sight struct {
	// none means that this Project has no control plane.
	none bool
	// promised means that the provider reports that it answers.
	promised bool
	// left is what a pass of the purge found, unless err is set.
	left purge.Left
	err  error
	// since is the time since the cleanup began.
	since time.Duration
}

// cleanup returns the condition ResourceCleanup that follows the present one, reason by reason. wait means to check
// again after a while; otherwise the change itself triggers the next step. Messages contain no numbers that change all
// the time, because each change is a write.
func cleanup(reason string, s sight, timeout time.Duration) (c metav1.Condition, wait bool) {
	complete := func(format string, args ...any) (metav1.Condition, bool) {
		return metav1.Condition{
			Type: api.ResourceCleanup, Status: metav1.ConditionFalse, Reason: api.ReasonCleanupComplete,
			Message: fmt.Sprintf(format, args...),
		}, false
	}
	going := func(reason, message string, wait bool) (metav1.Condition, bool) {
		return metav1.Condition{
			Type: api.ResourceCleanup, Status: metav1.ConditionTrue, Reason: reason,
			Message: message,
		}, wait
	}
	switch {
	case reason == "":
		return going(api.ReasonCleanupStarted, "The contents of the project are told to go.", false)
	case s.none:
		return complete("There is no control plane.")
	case s.err != nil && purge.Gone(s.err) && !s.promised:
		return complete("The control plane is gone.")
	case s.err == nil && s.left.None() && reason == api.ReasonCleanupAwaiting:
		return complete("Nothing is left.")
	case s.since >= timeout && s.err != nil:
		return complete("Given up after %v: the control plane does not answer as it should.", timeout)
	case s.since >= timeout:
		return complete("Given up after %v: there are still %s.", timeout, s.left)
	case s.err != nil:
		return going(reason, "The control plane does not answer as it should.", true)
	case reason == api.ReasonCleanupStarted: // the objects may be gone already: check again at once
		return going(api.ReasonCleanupAwaiting, "The contents of the project were told to go.", false)
	}
	return going(api.ReasonCleanupAwaiting, fmt.Sprintf("There are still %s.", s.left), true)
}
