package deployment

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
)

// rollbackTarget returns the revision in the annotation that requests a rollback, a remnant of the API
// extensions/v1beta1. Revision 0 is the one before the current. It returns false if there is no request, or if the
// annotation is not a number.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rollback.go, getRollbackTo
func rollbackTarget(d *appsv1.Deployment) (int64, bool) {
	revision, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedRollbackTo], 10, 64)
	return revision, err == nil
}

// rollBack gives the Deployment the template of the given revision, if the revision exists and its template is
// different. In any case it removes the request.
//
// Differs: the warnings are recorded after the request is removed and not before, so a retry of the sync does not
// record them again.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rollback.go, rollback
func (p *planner) rollBack(revision int64) {
	if revision == 0 {
		if _, revision = replicasets.HighestRevisions(p.all()); revision == 0 {
			p.giveUpRollback("DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
			return
		}
	}
	rs := replicasets.WithRevision(p.all(), revision)
	switch {
	case rs == nil:
		p.giveUpRollback("DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to.")
	case replicasets.SameTemplate(&p.d.Spec.Template, &rs.Spec.Template):
		p.giveUpRollback("DeploymentRollbackTemplateUnchanged",
			fmt.Sprintf("The rollback revision contains the same template as current deployment %q", p.d.Name))
	default:
		p.add(rollBack{
			Template:    replicasets.DeploymentTemplate(rs),
			Annotations: replicasets.RolledBackAnnotations(p.d, rs),
			Event:       normal("DeploymentRollback", "Rolled back deployment %q to revision %d", p.d.Name, revision),
		})
	}
}

func (p *planner) giveUpRollback(reason, message string) {
	p.add(rollBack{
		Annotations: replicasets.WithoutRollbackRequest(p.d.Annotations), Event: warning(reason, message),
	})
}
