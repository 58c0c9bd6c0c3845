package deployment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
)

// applier sends the steps of one sync. It is made for that sync and thrown away.
type applier struct {
	client   client.Client
	recorder events.Recorder
	// cached looks up a ReplicaSet that a create found in its way.
	cached func(namespace, name string) (*appsv1.ReplicaSet, bool)

	observed Observed
	// latest holds, by name, what the server returned for the ReplicaSets written in this sync.
	latest map[string]*appsv1.ReplicaSet
	// deploymentWritten says that this sync changed the Deployment. Invariant: then the next write of it ends the sync.
	deploymentWritten bool
	// deferred is the failure of an edit that lets the status be written. Invariant: then no further such edit is sent.
	deferred error
}

// run sends the steps in their order.
//
// Errors: of the first step that failed, of those that may fail, and of what was to be told about it; the sync is to be
// tried again.
func (a *applier) run(ctx context.Context, p Plan) error {
	for _, step := range p.Steps {
		if a.deploymentWritten && writesDeployment(step) {
			break
		}
		if err := a.do(ctx, step); err != nil {
			return errors.Join(a.deferred, err)
		}
	}
	return a.deferred
}

func writesDeployment(s Step) bool {
	switch s.(type) {
	case UpdateStatus, RollBack:
		return true
	}
	return false
}

func (a *applier) do(ctx context.Context, step Step) error {
	klog.FromContext(ctx).V(4).Info("Step", "step", step)
	switch s := step.(type) {
	case Announce:
		a.record(s.Event)
		return nil
	case CreateReplicaSet:
		return a.create(ctx, s)
	case EditReplicaSet:
		return a.edit(ctx, s)
	case DeleteReplicaSet:
		return a.delete(ctx, s.ReplicaSet)
	case UpdateStatus:
		return a.updateStatus(ctx, s)
	case RollBack:
		return a.rollBack(ctx, s)
	}
	return fmt.Errorf("unknown step %T", step)
}

func (a *applier) record(e Event) {
	if e != (Event{}) {
		a.recorder.Eventf(a.observed.Deployment, e.Type, e.Reason, "%s", e.Message)
	}
}

// errReplan ends the steps of a plan that was made without the ReplicaSet that was there all along.
var errReplan = errors.New("the new replica set exists already")

// create sends the new ReplicaSet. What a failure means is told in [CreateReplicaSet].
//
// Errors: errReplan, with observed holding the ReplicaSet that was missing.
func (a *applier) create(ctx context.Context, s CreateReplicaSet) error {
	created := s.ReplicaSet.DeepCopy()
	err := a.client.Create(ctx, created)
	switch {
	case err == nil:
		a.took(created)
		a.record(s.Event)
		return nil
	case apierrors.IsAlreadyExists(err):
		return a.inTheWay(ctx, s.ReplicaSet, err)
	case apierrors.HasStatusCause(err, namespaceTerminating):
		return err
	}
	return errors.Join(
		fmt.Errorf("create replica set %s: %w", klog.KObj(s.ReplicaSet), err),
		a.run(ctx, planCreateFailure(a.observed, s.ReplicaSet.Name, err)))
}

// inTheWay looks at the ReplicaSet that has the name of the one to be created.
func (a *applier) inTheWay(ctx context.Context, wanted *appsv1.ReplicaSet, exists error) error {
	d := a.observed.Deployment
	found, ok := a.cached(wanted.Namespace, wanted.Name)
	if !ok {
		return fmt.Errorf("create replica set %s, which the cache does not show yet: %w", klog.KObj(wanted), exists)
	}
	if metav1.IsControlledBy(found, d) && sameTemplate(&found.Spec.Template, &d.Spec.Template) {
		a.observed.ReplicaSets = append(
			a.observed.ReplicaSets[:len(a.observed.ReplicaSets):len(a.observed.ReplicaSets)], found,
		)
		return errReplan
	}
	klog.FromContext(ctx).V(2).Info("Found a hash collision, counting it to get another hash",
		"replicaSet", klog.KObj(found),
		"collisionCount", ptr.Deref(d.Status.CollisionCount, 0))
	return errors.Join(exists, a.run(ctx, planCollision(d)))
}

// edit changes a ReplicaSet as it was observed, or as this sync left it.
func (a *applier) edit(ctx context.Context, s EditReplicaSet) error {
	if s.StatusAnyway && a.deferred != nil {
		return nil
	}
	current := s.ReplicaSet
	if written, ok := a.latest[current.Name]; ok {
		current = written
	}
	written := s.result(current)
	if err := a.client.Update(ctx, written); err != nil {
		err = fmt.Errorf("update replica set %s: %w", klog.KObj(current), err)
		if s.StatusAnyway {
			a.deferred = err
			return nil
		}
		return err
	}
	a.took(written)
	a.record(s.Event)
	return nil
}

// delete removes a ReplicaSet of the history, unless it changed since it was observed.
//
// Differs: kube-controller-manager deletes by name alone, and so also a ReplicaSet that was scaled up in the meantime.
func (a *applier) delete(ctx context.Context, rs *appsv1.ReplicaSet) error {
	unchanged := client.Preconditions{UID: ptr.To(rs.UID), ResourceVersion: ptr.To(rs.ResourceVersion)}
	err := a.client.Delete(ctx, rs, unchanged)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete replica set %s: %w", klog.KObj(rs), err)
	}
	return nil
}

func (a *applier) updateStatus(ctx context.Context, s UpdateStatus) error {
	d := a.observed.Deployment.DeepCopy()
	d.Status = s.Status
	if s.Revision != "" {
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[RevisionAnnotation] = s.Revision
	}
	if err := a.client.Status().Update(ctx, d); err != nil {
		return fmt.Errorf("update status of deployment %s: %w", klog.KObj(d), err)
	}
	a.tookDeployment(d)
	return nil
}

func (a *applier) rollBack(ctx context.Context, s RollBack) error {
	d := a.observed.Deployment.DeepCopy()
	d.Annotations = s.Annotations
	if s.Template != nil {
		d.Spec.Template = *s.Template
	}
	if err := a.client.Update(ctx, d); err != nil {
		return fmt.Errorf("roll back deployment %s: %w", klog.KObj(d), err)
	}
	a.tookDeployment(d)
	a.record(s.Event)
	return nil
}

func (a *applier) took(rs *appsv1.ReplicaSet) {
	if a.latest == nil {
		a.latest = map[string]*appsv1.ReplicaSet{}
	}
	a.latest[rs.Name] = rs
}

// tookDeployment notes that the Deployment was written. A write that changed nothing brings about no event, and so no
// further sync: then this one goes on.
func (a *applier) tookDeployment(d *appsv1.Deployment) {
	if d.ResourceVersion != a.observed.Deployment.ResourceVersion {
		a.deploymentWritten = true
	}
}
