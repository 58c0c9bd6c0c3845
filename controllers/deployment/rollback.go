package deployment

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// rollbackTarget is the revision that the annotation of the extensions/v1beta1 API asks for; 0 is the last one. An
// annotation that is not a number is none.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/rollback.go, getRollbackTo
func rollbackTarget(d *appsv1.Deployment) (int64, bool) {
	revision, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedRollbackTo], 10, 64)
	return revision, err == nil
}

// rollBack gives the Deployment the template of the given revision, if there is such a revision and it has another
// template, and takes the request away in any case.
//
// Differs: the warnings are recorded when the request is taken away, not before; so a sync that is tried again does
// not record them again.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/rollback.go, rollback
func (p *planner) rollBack(revision int64) {
	if revision == 0 {
		if revision = p.lastRevision(); revision == 0 {
			p.giveUpRollback("DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
			return
		}
	}
	rs := p.withRevision(revision)
	switch {
	case rs == nil:
		p.giveUpRollback("DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to.")
	case sameTemplate(&p.d.Spec.Template, &rs.Spec.Template):
		p.giveUpRollback("DeploymentRollbackTemplateUnchanged",
			fmt.Sprintf("The rollback revision contains the same template as current deployment %q", p.d.Name))
	default:
		p.add(RollBack{
			Template:    templateOf(rs),
			Annotations: withoutRequest(annotationsOf(p.d, rs)),
			Event:       normal("DeploymentRollback", "Rolled back deployment %q to revision %d", p.d.Name, revision),
		})
	}
}

func (p *planner) giveUpRollback(reason, message string) {
	p.add(RollBack{Annotations: withoutRequest(p.d.Annotations), Event: warning(reason, message)})
}

// lastRevision is the highest revision but one, 0 when there are not two.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, LastRevision
func (p *planner) lastRevision() int64 {
	var highest, second int64
	for _, rs := range p.all() {
		switch revision, err := revisionOf(rs); {
		case err != nil:
		case revision >= highest:
			highest, second = revision, highest
		case revision > second:
			second = revision
		}
	}
	return second
}

func (p *planner) withRevision(revision int64) *appsv1.ReplicaSet {
	for _, rs := range p.all() {
		if r, err := revisionOf(rs); err == nil && r == revision {
			return rs
		}
	}
	return nil
}

// templateOf is the template of the Deployment that rs was made for.
func templateOf(rs *appsv1.ReplicaSet) *corev1.PodTemplateSpec {
	t := rs.Spec.Template.DeepCopy()
	delete(t.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return t
}

// annotationsOf are the annotations that d had when rs was its new ReplicaSet: those of rs, beside those that are
// d's own. Otherwise rs would be given those of the template that is rolled back, such as its change cause.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, SetDeploymentAnnotationsTo
func annotationsOf(d *appsv1.Deployment, rs *appsv1.ReplicaSet) map[string]string {
	annotations := map[string]string{}
	for key, value := range d.Annotations {
		if isOwn(key) {
			annotations[key] = value
		}
	}
	for key, value := range rs.Annotations {
		if !isOwn(key) {
			annotations[key] = value
		}
	}
	return annotations
}

func withoutRequest(annotations map[string]string) map[string]string {
	return without(annotations, appsv1.DeprecatedRollbackTo)
}
