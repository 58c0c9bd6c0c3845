package controller

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/purge"
)

// owns says whether the control plane is that of this Project, not of an earlier one of its name.
func owns(p *api.Project, plane *api.ProjectControlPlane) bool {
	return plane.Labels[api.ProjectUIDLabel] == string(p.UID)
}

// answers says whether whoever runs the control plane says that it can be used.
func answers(plane *api.ProjectControlPlane) bool {
	return plane.DeletionTimestamp == nil && conditions.Is(plane.Status.Conditions, api.ControlPlaneReady, metav1.ConditionTrue)
}

// readiness is the condition Ready of a Project that lives. prepared is what became of the preparation of a control plane that
// answers; nil when it is done.
func readiness(p *api.Project, plane *api.ProjectControlPlane, prepared error) metav1.Condition {
	c := metav1.Condition{Type: api.Ready, Status: metav1.ConditionFalse, Reason: api.ReasonProvisioning}
	switch {
	case !owns(p, plane):
		c.Reason, c.Message = api.ReasonNameConflict, "There is still the control plane of an earlier project of this name."
	case !answers(plane):
		c.Message = "The control plane is not ready."
	case prepared != nil:
		c.Message = "The control plane cannot be prepared yet."
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, api.ReasonReady, "The control plane can be used."
	}
	return c
}

// sight is what was seen of the control plane of a Project that is being deleted.
type sight struct {
	// none: there is no control plane of this Project.
	none bool
	// promised: its provider says that it answers.
	promised bool
	// left is what a pass of the purge found, unless err.
	left purge.Left
	err  error
	// since is when the cleanup began.
	since time.Duration
}

// cleanup is the condition ResourceCleanup that follows the one that is, reason by reason, and whether it is to be looked at again after a
// while: otherwise the change itself is the reason to go on. Messages hold no numbers that change all the time: each change is a write.
func cleanup(reason string, s sight, timeout time.Duration) (c metav1.Condition, wait bool) {
	complete := func(format string, args ...any) (metav1.Condition, bool) {
		return metav1.Condition{
			Type: api.ResourceCleanup, Status: metav1.ConditionFalse, Reason: api.ReasonCleanupComplete, Message: fmt.Sprintf(format, args...),
		}, false
	}
	going := func(reason, message string, wait bool) (metav1.Condition, bool) {
		return metav1.Condition{Type: api.ResourceCleanup, Status: metav1.ConditionTrue, Reason: reason, Message: message}, wait
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
	case reason == api.ReasonCleanupStarted: // What was told to go may be gone: look again at once.
		return going(api.ReasonCleanupAwaiting, "The contents of the project were told to go.", false)
	}
	return going(api.ReasonCleanupAwaiting, fmt.Sprintf("There are still %s.", s.left), true)
}
