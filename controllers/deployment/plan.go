package deployment

import (
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Observed is what one sync knows. A plan changes none of it: the objects may be those of a cache.
type Observed struct {
	Deployment *appsv1.Deployment
	// ReplicaSets are those that the Deployment owns, adoptions and releases done. Their order does not matter.
	ReplicaSets []*appsv1.ReplicaSet
	// Pods are the pods of each ReplicaSet, by its UID. Only the strategy Recreate asks for them.
	Pods map[types.UID][]*corev1.Pod
	// Now is the time of the sync.
	Now time.Time
}

// Plan is what is to be done about what was observed.
type Plan struct {
	// Steps are done in this order. The first that fails ends the sync, but for what [EditReplicaSet] says; and so does
	// the second write of the Deployment itself, before it is sent, for the reason that the package comment gives.
	Steps []Step
	// RequeueAfter is when to look again although nothing may have happened: the progress deadline. Zero: not at all.
	RequeueAfter time.Duration
}

// String is one step a line, in the words of [Step].
func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintln(&b, s)
	}
	if p.RequeueAfter > 0 {
		fmt.Fprintln(&b, "requeue after", p.RequeueAfter)
	}
	return b.String()
}

// Why a plan cannot be made. A plan depends on nothing but what was observed: trying again with the same is no use.
var (
	errNoSelector = errors.New("the deployment has no selector")
	errStrategy   = errors.New("unexpected deployment strategy type")
)

// NewPlan decides what one sync does. It reads nothing but its argument and changes nothing.
//
// Errors: a Deployment that the API server would not have let in: no selector, an unknown strategy, a percentage that
// is none.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/deployment_controller.go, syncDeployment
func NewPlan(o Observed) (Plan, error) {
	d := o.Deployment
	if selectsAll(d) {
		return planSelectingAll(d), nil
	}
	p, err := newPlanner(o)
	if err != nil {
		return Plan{}, err
	}
	if d.DeletionTimestamp != nil {
		p.syncNewReplicaSet(alone)
		p.writeStatus()
		return p.plan, nil
	}
	p.notePause()
	revision, rollback := rollbackTarget(d)
	if d.Spec.Paused {
		p.syncNewReplicaSet(alone)
		p.scale()
		if !rollback { // which may want what would be deleted
			p.cleanUpHistory()
		}
		p.writeStatus()
		return p.plan, nil
	}
	if rollback {
		p.syncNewReplicaSet(alone)
		p.createNewReplicaSet()
		p.rollBack(revision)
		return p.plan, nil
	}
	p.syncNewReplicaSet(withDeployment)
	if p.sizeChanged() {
		p.scale()
		p.writeStatus()
		return p.plan, nil
	}
	return p.rollOut()
}

// rollOut moves from the old ReplicaSets to the new one as the strategy says.
func (p *planner) rollOut() (Plan, error) {
	switch t := p.d.Spec.Strategy.Type; t {
	case appsv1.RecreateDeploymentStrategyType:
		p.recreate()
	case appsv1.RollingUpdateDeploymentStrategyType:
		p.rollingUpdate()
	default:
		return Plan{}, fmt.Errorf("%w: %s", errStrategy, t)
	}
	return p.plan, nil
}

// planner is a plan in the making.
type planner struct {
	observed Observed
	limits   limits
	// d is the Deployment as the steps so far leave it, but for its spec, which is the observed one.
	// Invariant: its annotations and status are not shared with the observed Deployment.
	d *appsv1.Deployment
	// newRS is the ReplicaSet of the current template as the steps so far leave it, but for its size.
	// Invariant: nil until it exists or is to be created.
	newRS *appsv1.ReplicaSet
	// oldRSs are all others. Invariant: as observed, oldest first.
	oldRSs []*appsv1.ReplicaSet
	plan   Plan
}

func newPlanner(o Observed) (*planner, error) {
	if o.Deployment.Spec.Selector == nil {
		return nil, errNoSelector
	}
	l, err := limitsOf(o.Deployment)
	if err != nil {
		return nil, err
	}
	p := &planner{observed: o, limits: l, d: o.Deployment.DeepCopy()}
	p.newRS, p.oldRSs = split(o.Deployment, o.ReplicaSets)
	return p, nil
}

// all is every ReplicaSet: the old ones, then the new one if there is one.
func (p *planner) all() []*appsv1.ReplicaSet {
	all := append([]*appsv1.ReplicaSet(nil), p.oldRSs...)
	if p.newRS != nil {
		all = append(all, p.newRS)
	}
	return all
}

func (p *planner) add(s Step) { p.plan.Steps = append(p.plan.Steps, s) }

// writeDeploymentStatus adds the write of the Deployment's status and revision as they are in p.d now.
func (p *planner) writeDeploymentStatus() {
	p.add(UpdateStatus{Status: *p.d.Status.DeepCopy(), Revision: p.d.Annotations[RevisionAnnotation]})
}

// notePause says in the condition Progressing that the Deployment was paused or resumed, so that the time in between
// does not count against the deadline. A rollout that has failed stays failed.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, checkPausedConditions
func (p *planner) notePause() {
	c := condition(&p.d.Status, appsv1.DeploymentProgressing)
	if !hasDeadline(p.d) || c != nil && c.Reason == reasonDeadlineExceeded {
		return
	}
	noted := c != nil && c.Reason == reasonPaused
	switch paused := p.d.Spec.Paused; {
	case paused && !noted:
		p.setProgressing(corev1.ConditionUnknown, reasonPaused, "Deployment is paused")
	case !paused && noted:
		p.setProgressing(corev1.ConditionUnknown, reasonResumed, "Deployment is resumed")
	default:
		return
	}
	p.writeDeploymentStatus()
}

func (p *planner) setProgressing(status corev1.ConditionStatus, reason, message string) {
	setCondition(&p.d.Status, newCondition(appsv1.DeploymentProgressing, status, reason, message, p.observed.Now))
}

// selectsAll tells a Deployment whose selector is there but empty. It would take every ReplicaSet of the namespace.
func selectsAll(d *appsv1.Deployment) bool {
	s := d.Spec.Selector
	return s != nil && len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// planSelectingAll does nothing for the Deployment but to say why.
func planSelectingAll(d *appsv1.Deployment) Plan {
	steps := []Step{
		Announce{warning("SelectingAll", "This deployment is selecting all pods. A non-empty selector is required.")},
	}
	if d.Status.ObservedGeneration < d.Generation {
		status := d.Status.DeepCopy()
		status.ObservedGeneration = d.Generation
		steps = append(steps, UpdateStatus{Status: *status})
	}
	return Plan{Steps: steps}
}

// controllerOf is the owner reference of what d owns.
func controllerOf(d *appsv1.Deployment) metav1.OwnerReference {
	return *metav1.NewControllerRef(d, kind)
}

// kind is what an owner reference to a Deployment says.
var kind = appsv1.SchemeGroupVersion.WithKind("Deployment")
