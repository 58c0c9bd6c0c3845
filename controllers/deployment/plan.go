package deployment

import (
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/conditions"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/rollout"
)

// Observed is what one sync knows. Making a plan does not change it: the objects may be shared with a cache.
type Observed struct {
	Deployment *appsv1.Deployment
	// ReplicaSets are those that the Deployment owns after adoptions and releases, in any order.
	ReplicaSets []*appsv1.ReplicaSet
	// Pods are the pods of each ReplicaSet, by its UID. Only the strategy Recreate needs them.
	Pods map[types.UID][]*corev1.Pod
	// Now is the time of the sync.
	Now time.Time
}

// Changes is what one sync does about what it observed.
type Changes struct {
	// steps are done in this order. A step that fails ends the sync, except for editReplicaSet.StatusAnyway. A second
	// write of the Deployment also ends the sync, before it is sent: the package comment gives the reason.
	steps []step
	// RequeueAfter is when to look again even if nothing happens, because the progress deadline may have passed. Zero:
	// not at all.
	RequeueAfter time.Duration
}

// String returns one line for each step of the plan.
func (p Changes) String() string {
	var b strings.Builder
	for _, s := range p.steps {
		fmt.Fprintln(&b, s)
	}
	if p.RequeueAfter > 0 {
		fmt.Fprintln(&b, "requeue after", p.RequeueAfter)
	}
	return b.String()
}

// Reasons why a plan cannot be made. A retry cannot help as long as the same is observed.
var (
	errNoSelector = errors.New("the deployment has no selector")
	errStrategy   = errors.New("unexpected deployment strategy type")
)

// Plan decides what one sync does. It is a pure function.
//
// Errors: a Deployment that the API server would have refused, because it has no selector, an unknown strategy or a
// malformed percentage.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go, syncDeployment
func Plan(o Observed) (Changes, error) {
	d := o.Deployment
	if selectsAll(d) {
		return planSelectingAll(d), nil
	}
	p, err := newPlanner(o)
	if err != nil {
		return Changes{}, err
	}
	if d.DeletionTimestamp != nil {
		p.syncNewReplicaSet(alone)
		p.writeStatus()
		return p.plan, nil
	}
	p.notePause()
	revision, rollback := rollbackTarget(d)
	switch {
	case d.Spec.Paused:
		p.syncNewReplicaSet(alone)
		p.scale()
		if !rollback { // a rollback may need what would be deleted
			p.cleanUpHistory()
		}
		p.writeStatus()
		return p.plan, nil
	case rollback:
		p.syncNewReplicaSet(alone)
		if len(p.rewritten()) < mostRewritten {
			p.createNewReplicaSet()
		}
		p.rollBack(revision)
		return p.plan, nil
	}
	p.syncNewReplicaSet(withDeployment)
	switch t := d.Spec.Strategy.Type; {
	case p.sizeChanged():
		p.scale()
		p.writeStatus()
	case p.waitForRewriter():
	case t == appsv1.RecreateDeploymentStrategyType:
		p.recreate()
	case t == appsv1.RollingUpdateDeploymentStrategyType:
		p.rollingUpdate()
	default:
		return Changes{}, fmt.Errorf("%w: %s", errStrategy, t)
	}
	return p.plan, nil
}

// planner makes one plan.
type planner struct {
	observed Observed
	limits   rollout.Limits
	// d is the Deployment as the steps so far leave it. Its spec is the observed one.
	// Invariant: its annotations and status are not shared with the observed Deployment.
	d *appsv1.Deployment
	// newRS is the ReplicaSet of the current template as the steps so far leave it, apart from its size.
	// Invariant: nil until it exists or the plan creates it.
	newRS *appsv1.ReplicaSet
	// oldRSs are all others. Invariant: as observed, oldest first.
	oldRSs []*appsv1.ReplicaSet
	plan   Changes
}

func newPlanner(o Observed) (*planner, error) {
	if o.Deployment.Spec.Selector == nil {
		return nil, errNoSelector
	}
	l, err := rollout.LimitsOf(o.Deployment)
	if err != nil {
		return nil, err
	}
	p := &planner{observed: o, limits: l, d: o.Deployment.DeepCopy()}
	p.newRS, p.oldRSs = replicasets.Split(o.Deployment, o.ReplicaSets)
	return p, nil
}

// all returns every ReplicaSet: the old ones, then the new one if there is one.
func (p *planner) all() []*appsv1.ReplicaSet {
	all := append([]*appsv1.ReplicaSet(nil), p.oldRSs...)
	if p.newRS != nil {
		all = append(all, p.newRS)
	}
	return all
}

func (p *planner) add(s step) { p.plan.steps = append(p.plan.steps, s) }

// writeDeploymentStatus adds a write of the Deployment's status and revision as they are in p.d now.
func (p *planner) writeDeploymentStatus() {
	p.add(updateStatus{Status: *p.d.Status.DeepCopy(), Revision: p.d.Annotations[replicasets.RevisionAnnotation]})
}

// notePause records in the condition Progressing that the Deployment was paused or resumed, so that the time in between
// does not count against the deadline. A rollout that has failed stays failed.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, checkPausedConditions
func (p *planner) notePause() {
	c := conditions.Find(&p.d.Status, appsv1.DeploymentProgressing)
	if !rollout.HasDeadline(p.d) || c != nil && c.Reason == conditions.DeadlineExceeded {
		return
	}
	noted := c != nil && c.Reason == conditions.Paused
	switch paused := p.d.Spec.Paused; {
	case paused && !noted:
		p.setProgressing(corev1.ConditionUnknown, conditions.Paused, "Deployment is paused")
	case !paused && noted:
		p.setProgressing(corev1.ConditionUnknown, conditions.Resumed, "Deployment is resumed")
	default:
		return
	}
	p.writeDeploymentStatus()
}

func (p *planner) setProgressing(status corev1.ConditionStatus, reason, message string) {
	conditions.Set(&p.d.Status,
		conditions.New(appsv1.DeploymentProgressing, status, reason, message, p.observed.Now))
}

// selectsAll reports whether the selector is present but empty. It would match every ReplicaSet of the namespace.
func selectsAll(d *appsv1.Deployment) bool {
	s := d.Spec.Selector
	return s != nil && len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// planSelectingAll does nothing for the Deployment except to report why.
func planSelectingAll(d *appsv1.Deployment) Changes {
	steps := []step{
		announce{warning("SelectingAll", "This deployment is selecting all pods. A non-empty selector is required.")},
	}
	if d.Status.ObservedGeneration < d.Generation {
		status := d.Status.DeepCopy()
		status.ObservedGeneration = d.Generation
		steps = append(steps, updateStatus{Status: *status})
	}
	return Changes{steps: steps}
}
