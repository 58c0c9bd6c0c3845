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
)

// revisionScope says whether the Deployment learns of its revision in the sync that changes the new ReplicaSet.
type revisionScope bool

const (
	// alone: a change of the ReplicaSet is enough for this sync; the Deployment's revision follows in the next.
	alone revisionScope = false
	// withDeployment: the Deployment's revision is written before anything else happens.
	withDeployment revisionScope = true
)

// newRevision is one more than the highest revision of the old ReplicaSets. One that is not a number does not count.
func (p *planner) newRevision() int64 {
	var highest int64
	for _, rs := range p.oldRSs {
		if revision, err := revisionOf(rs); err == nil {
			highest = max(highest, revision)
		}
	}
	return highest + 1
}

// syncNewReplicaSet brings the new ReplicaSet's annotations and minReadySeconds up to date, and the Deployment's
// revision. Nothing happens while there is no new ReplicaSet.
//
// Differs: kube-controller-manager computes this twice in a sync of a rollout, and the second write of the ReplicaSet
// fails with a conflict; the retry then writes the revision. Here both happen in one sync, in that order.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, getNewReplicaSet
func (p *planner) syncNewReplicaSet(scope revisionScope) {
	if p.newRS == nil {
		return
	}
	if p.editNewReplicaSet() && scope == alone {
		return
	}
	changed := p.setRevision(p.newRS.Annotations[RevisionAnnotation])
	if hasDeadline(p.d) && condition(&p.d.Status, appsv1.DeploymentProgressing) == nil {
		p.setProgressing(corev1.ConditionTrue, reasonFoundNewReplicaSet,
			fmt.Sprintf("Found new replica set %q", p.newRS.Name))
		changed = true
	}
	if changed {
		p.writeDeploymentStatus()
	}
}

// editNewReplicaSet reports whether the new ReplicaSet needs a change, which it then is the object of.
func (p *planner) editNewReplicaSet() bool {
	annotations, changed := annotationsForNew(p.d, p.newRS.Annotations, p.newRevision())
	edit := EditReplicaSet{ReplicaSet: p.newRS, Annotations: changedKeys(p.newRS.Annotations, annotations)}
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

func changedKeys(current, wanted map[string]string) map[string]string {
	wanted = maps.Clone(wanted)
	maps.DeleteFunc(wanted, func(key, value string) bool {
		old, ok := current[key]
		return ok && old == value
	})
	return wanted
}

// setRevision reports whether the Deployment has another revision.
func (p *planner) setRevision(revision string) bool {
	if p.d.Annotations[RevisionAnnotation] == revision {
		return false
	}
	if p.d.Annotations == nil {
		p.d.Annotations = map[string]string{}
	}
	p.d.Annotations[RevisionAnnotation] = revision
	return true
}

// createNewReplicaSet creates the new ReplicaSet, unless there is one, at the size that the strategy allows now.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, getNewReplicaSet
func (p *planner) createNewReplicaSet() {
	if p.newRS != nil {
		return
	}
	rs := p.replicaSetForTemplate()
	rs.Spec.Replicas = ptr.To(p.allowedSize(rs))
	revision := p.newRevision()
	rs.Annotations, _ = annotationsForNew(p.d, nil, revision)
	maps.Copy(rs.Annotations, replicasAnnotations(p.limits))

	create := CreateReplicaSet{ReplicaSet: rs}
	if n := size(rs); n > 0 {
		create.Event = normal("ScalingReplicaSet", "Scaled up replica set %s from 0 to %d", rs.Name, n)
	}
	p.add(create)
	p.newRS = rs
	changed := p.setRevision(strconv.FormatInt(revision, 10))
	if hasDeadline(p.d) {
		p.setProgressing(corev1.ConditionTrue, reasonNewReplicaSetCreated,
			fmt.Sprintf("Created new replica set %q", rs.Name))
		changed = true
	}
	if changed {
		p.writeDeploymentStatus()
	}
}

// replicaSetForTemplate is the ReplicaSet of the Deployment's template, with no pods. Its name is a function of the
// template and the collision count, so that creating it twice fails.
func (p *planner) replicaSetForTemplate() *appsv1.ReplicaSet {
	d := p.d
	hash := ComputeHash(&d.Spec.Template, d.Status.CollisionCount)
	template := d.Spec.Template.DeepCopy()
	template.Labels = withHash(template.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withHash(selector.MatchLabels, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            replicaSetName(d.Name, hash),
			Namespace:       d.Namespace,
			Labels:          maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{controllerOf(d)},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas:        ptr.To[int32](0),
			MinReadySeconds: d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        *template,
		},
	}
}

func withHash(labels map[string]string, hash string) map[string]string {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return labels
}

// allowedSize is the size that the strategy allows the new ReplicaSet now: all at once, or as far as the surge goes.
// It is never less than the size it has.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, NewRSNewReplicas
func (p *planner) allowedSize(newRS *appsv1.ReplicaSet) int32 {
	if !isRolling(p.d) {
		return p.limits.replicas
	}
	now := size(newRS)
	room := p.limits.maxReplicas() - totalSize(p.oldRSs) - now
	return now + max(0, min(room, p.limits.replicas-now))
}

// planCollision is what to do when the new ReplicaSet's name is taken by a ReplicaSet that is not it: the next sync
// computes another hash.
func planCollision(d *appsv1.Deployment) Plan {
	status := d.Status.DeepCopy()
	status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	return Plan{Steps: []Step{UpdateStatus{Status: *status}}}
}

// planCreateFailure is what to do when the new ReplicaSet was refused: to say so.
func planCreateFailure(o Observed, name string, failure error) Plan {
	message := fmt.Sprintf("Failed to create new replica set %q: %v", name, failure)
	steps := []Step{Announce{warning(reasonReplicaSetCreateError, message)}}
	status := o.Deployment.Status.DeepCopy()
	if hasDeadline(o.Deployment) {
		setCondition(status,
			newCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonReplicaSetCreateError, message,
				o.Now))
	}
	if !equality.Semantic.DeepEqual(o.Deployment.Status, *status) {
		steps = append(steps, UpdateStatus{Status: *status})
	}
	return Plan{Steps: steps}
}
