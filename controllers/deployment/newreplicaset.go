package deployment

import (
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/conditions"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/rollout"
)

// kind is the kind that the owner references of a Deployment's ReplicaSets name.
var kind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// revisionScope tells whether the sync that changes the new ReplicaSet also writes the revision of the Deployment.
type revisionScope bool

const (
	// alone: if the sync changes the ReplicaSet, the next one writes the Deployment's revision.
	alone revisionScope = false
	// withDeployment: the Deployment's revision is written before anything else happens.
	withDeployment revisionScope = true
)

// newRevision is one more than the highest revision of the old ReplicaSets.
func (p *planner) newRevision() int64 {
	highest, _ := replicasets.HighestRevisions(p.oldRSs)
	return highest + 1
}

// syncNewReplicaSet updates the annotations and minReadySeconds of the new ReplicaSet, and the Deployment's revision.
// It does nothing as long as there is no new ReplicaSet.
//
// Differs: kube-controller-manager computes this twice in a sync of a rollout, and the second write of the ReplicaSet
// fails with a conflict; the retry then writes the revision. Here one sync does both, in that order.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet
func (p *planner) syncNewReplicaSet(scope revisionScope) {
	if p.newRS == nil {
		return
	}
	if p.editNewReplicaSet() && scope == alone {
		return
	}
	changed := p.setRevision(p.newRS.Annotations[replicasets.RevisionAnnotation])
	if rollout.HasDeadline(p.d) && conditions.Find(&p.d.Status, appsv1.DeploymentProgressing) == nil {
		p.setProgressing(corev1.ConditionTrue, conditions.FoundNewReplicaSet,
			fmt.Sprintf("Found new replica set %q", p.newRS.Name))
		changed = true
	}
	if changed {
		p.writeDeploymentStatus()
	}
}

// editNewReplicaSet updates p.newRS, and reports whether that needs a write.
func (p *planner) editNewReplicaSet() bool {
	wanted, changed := replicasets.AnnotationsForNew(p.d, p.newRS.Annotations, p.newRevision())
	edit := editReplicaSet{ReplicaSet: p.newRS, Annotations: replicasets.Changed(p.newRS.Annotations, wanted)}
	if p.newRS.Spec.MinReadySeconds != p.d.Spec.MinReadySeconds {
		edit.MinReadySeconds = ptr.To(p.d.Spec.MinReadySeconds)
		changed = true
	}
	if !changed {
		return false
	}
	p.add(edit)
	p.newRS = edit.result(p.newRS)
	return true
}

// setRevision sets the revision of p.d, and reports whether it changed.
func (p *planner) setRevision(revision string) bool {
	if p.d.Annotations[replicasets.RevisionAnnotation] == revision {
		return false
	}
	metav1.SetMetaDataAnnotation(&p.d.ObjectMeta, replicasets.RevisionAnnotation, revision)
	return true
}

// createNewReplicaSet creates the new ReplicaSet if there is none, at the size that the strategy allows now.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet
func (p *planner) createNewReplicaSet() {
	if p.newRS != nil {
		return
	}
	rs := p.replicaSetForTemplate()
	n := p.allowedSize(rs)
	rs.Spec.Replicas = &n
	revision := p.newRevision()
	rs.Annotations, _ = replicasets.AnnotationsForNew(p.d, nil, revision)
	maps.Copy(rs.Annotations, replicasets.ScaleAnnotations(p.limits.Replicas, p.limits.MaxReplicas()))

	create := createReplicaSet{ReplicaSet: rs}
	if n > 0 {
		create.Event = normal("ScalingReplicaSet", "Scaled up replica set %s from 0 to %d", rs.Name, n)
	}
	p.add(create)
	p.newRS = rs
	changed := p.setRevision(strconv.FormatInt(revision, 10))
	if rollout.HasDeadline(p.d) {
		p.setProgressing(corev1.ConditionTrue, conditions.NewReplicaSetCreated,
			fmt.Sprintf("Created new replica set %q", rs.Name))
		changed = true
	}
	if changed {
		p.writeDeploymentStatus()
	}
}

// replicaSetForTemplate returns a ReplicaSet with the Deployment's template and no pods. Its name is computed from the
// template and the collision count, so a second attempt to create it fails.
func (p *planner) replicaSetForTemplate() *appsv1.ReplicaSet {
	d := p.d
	hash := replicasets.ComputeHash(&d.Spec.Template, d.Status.CollisionCount)
	template := d.Spec.Template.DeepCopy()
	template.Labels = replicasets.WithHash(template.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = replicasets.WithHash(selector.MatchLabels, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            replicasets.Name(d.Name, hash),
			Namespace:       d.Namespace,
			Labels:          maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, kind)},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas:        ptr.To[int32](0),
			MinReadySeconds: d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        *template,
		},
	}
}

// allowedSize is the size that the strategy allows the new ReplicaSet now: all replicas at once, or as many as the
// surge allows. It is never less than the ReplicaSet's present size.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, NewRSNewReplicas
func (p *planner) allowedSize(newRS *appsv1.ReplicaSet) int32 {
	if !rollout.IsRolling(p.d) {
		return p.limits.Replicas
	}
	now := replicasets.Size(newRS)
	room := p.limits.MaxReplicas() - replicasets.TotalSize(p.oldRSs) - now
	return now + max(0, min(room, p.limits.Replicas-now))
}

// planCollision is the plan for the case that another ReplicaSet has the name of the new one: it counts the collision,
// so that the next sync computes another hash.
func planCollision(d *appsv1.Deployment) Changes {
	status := d.Status.DeepCopy()
	status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	return Changes{steps: []step{updateStatus{Status: *status}}}
}

// planCreateFailure is the plan for the case that the API server refused the new ReplicaSet: it reports the failure.
func planCreateFailure(o Observed, name string, failure error) Changes {
	message := fmt.Sprintf("Failed to create new replica set %q: %v", name, failure)
	steps := []step{announce{warning(conditions.ReplicaSetCreateError, message)}}
	status := o.Deployment.Status.DeepCopy()
	if rollout.HasDeadline(o.Deployment) {
		conditions.Set(status, conditions.New(appsv1.DeploymentProgressing, corev1.ConditionFalse,
			conditions.ReplicaSetCreateError, message, o.Now))
	}
	if !equality.Semantic.DeepEqual(o.Deployment.Status, *status) {
		steps = append(steps, updateStatus{Status: *status})
	}
	return Changes{steps: steps}
}
