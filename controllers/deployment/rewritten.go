package deployment

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/conditions"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/rollout"
)

const (
	// mostRewritten is how many ReplicaSets are made in a row for one template although something changed each when it
	// was created. One may be a collision of hashes.
	mostRewritten = 3
	// rewrittenDelay is the delay before the next one. Each further one doubles it, up to slowestRewritten.
	rewrittenDelay, slowestRewritten = time.Minute, time.Hour
)

// waitForRewriter plans to wait if a mutating webhook changes the template of each ReplicaSet that is created. Such a
// ReplicaSet is not the new one, so another would be created, under another name, without end. The plan then reports
// the field that differs, leaves all ReplicaSets as they are, and tries again later. It reports whether it does.
//
// Differs: kube-controller-manager creates them without end, several in a second.
func (p *planner) waitForRewriter() bool {
	made := p.rewritten()
	if len(made) < mostRewritten {
		return false
	}
	delay := min(rewrittenDelay<<(len(made)-mostRewritten), slowestRewritten)
	wait := made[0].CreationTimestamp.Add(delay).Sub(p.observed.Now)
	if wait <= 0 {
		return false
	}
	p.plan.RequeueAfter = wait
	p.reportRewritten(made[0])
	return true
}

// rewritten returns the ReplicaSets that were made for the current template and do not have it, latest first. It
// finds them by their names, which differ in the collision count, and stops where more would not change the delay.
func (p *planner) rewritten() (made []*appsv1.ReplicaSet) {
	count := ptr.Deref(p.d.Status.CollisionCount, 0)
	if p.newRS != nil || count < mostRewritten-1 {
		return nil
	}
	for n := count; n >= 0 && len(made) < 10; n-- {
		var collisions *int32 // nil is the count before the first collision
		if n > 0 {
			collisions = &n
		}
		name := replicasets.Name(p.d.Name, replicasets.ComputeHash(&p.d.Spec.Template, collisions))
		i := slices.IndexFunc(p.oldRSs, func(rs *appsv1.ReplicaSet) bool { return rs.Name == name })
		switch {
		case i >= 0:
			made = append(made, p.oldRSs[i])
		case n < count: // The first name may not have been used yet.
			return made
		}
	}
	return made
}

// reportRewritten writes the status, and says in the condition Progressing and in an event what is wrong.
func (p *planner) reportRewritten(latest *appsv1.ReplicaSet) {
	message := fmt.Sprintf("Something, such as a mutating webhook, changes each new replica set: %s of %q differs",
		replicasets.Difference(&p.d.Spec.Template, &latest.Spec.Template), latest.Name)
	status := p.status()
	was := conditions.Find(&status, appsv1.DeploymentProgressing)
	if known := was != nil && was.Reason == conditions.ReplicaSetRewritten; !known {
		p.add(announce{warning(conditions.ReplicaSetRewritten, message)})
	}
	if rollout.HasDeadline(p.d) {
		conditions.Set(&status, conditions.New(appsv1.DeploymentProgressing, corev1.ConditionFalse,
			conditions.ReplicaSetRewritten, message, p.observed.Now))
	}
	p.writeStatusIfChanged(status)
}
