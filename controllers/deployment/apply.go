package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
)

// applier sends the steps of one sync. Each sync makes its own.
type applier struct {
	client   client.Client
	recorder events.Recorder
	// cached looks up the ReplicaSet that has the name of the one to create.
	cached func(namespace, name string) (*appsv1.ReplicaSet, bool)

	observed Observed
	// latest holds, by name, what the server returned for the ReplicaSets written in this sync.
	latest map[string]*appsv1.ReplicaSet
	// deploymentWritten is true once this sync has changed the Deployment. The sync ends before the next write of it.
	deploymentWritten bool
	// deferred is the failure of an edit with StatusAnyway. Invariant: no further such edit is sent after it.
	deferred error
}

// run sends the steps in order.
//
// Errors: that of the first step that failed, joined with deferred and with a failure to report it. The sync is
// retried.
func (a *applier) run(ctx context.Context, p Changes) error {
	for _, step := range p.steps {
		if a.deploymentWritten && writesDeployment(step) {
			return a.deferred
		}
		if err := a.do(ctx, step); err != nil {
			return errors.Join(a.deferred, err)
		}
	}
	return a.deferred
}

func (a *applier) do(ctx context.Context, step step) error {
	klog.FromContext(ctx).V(4).Info("Step", "step", step)
	switch s := step.(type) {
	case announce:
		a.record(s.Event)
		return nil
	case createReplicaSet:
		return a.create(ctx, s)
	case editReplicaSet:
		return a.edit(ctx, s)
	case deleteReplicaSet:
		return a.delete(ctx, s.ReplicaSet)
	case updateStatus:
		return a.updateStatus(ctx, s)
	case rollBack:
		return a.rollBack(ctx, s)
	}
	return fmt.Errorf("unknown step %T", step)
}

func (a *applier) record(e event) {
	if e != (event{}) {
		a.recorder.Eventf(a.observed.Deployment, e.Type, e.Reason, "%s", e.Message)
	}
}

// errReplan ends a plan that was made without knowing that the new ReplicaSet exists.
var errReplan = errors.New("the new replica set exists already")

// create sends the new ReplicaSet. The comment of createReplicaSet lists what a failure can mean.
//
// Errors: errReplan, after adding to observed the ReplicaSet that was missing.
func (a *applier) create(ctx context.Context, s createReplicaSet) error {
	created := s.ReplicaSet.DeepCopy()
	err := a.client.Create(ctx, created)
	switch {
	case err == nil:
		a.latest[created.Name] = created
		a.record(s.Event)
		return nil
	case apierrors.IsAlreadyExists(err):
		return a.nameTaken(ctx, s.ReplicaSet, err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err
	}
	return errors.Join(
		fmt.Errorf("create replica set %s: %w", klog.KObj(s.ReplicaSet), err),
		a.run(ctx, planCreateFailure(a.observed, s.ReplicaSet.Name, err)))
}

// nameTaken handles the case that another ReplicaSet has the name of the one to create.
func (a *applier) nameTaken(ctx context.Context, wanted *appsv1.ReplicaSet, exists error) error {
	d := a.observed.Deployment
	found, ok := a.cached(wanted.Namespace, wanted.Name)
	if !ok {
		return fmt.Errorf("create replica set %s, which the cache does not have yet: %w", klog.KObj(wanted), exists)
	}
	if metav1.IsControlledBy(found, d) && replicasets.SameTemplate(&found.Spec.Template, &d.Spec.Template) {
		a.observed.ReplicaSets = append(slices.Clip(a.observed.ReplicaSets), found)
		return errReplan
	}
	klog.FromContext(ctx).V(2).Info("Found a hash collision, using another hash",
		"replicaSet", klog.KObj(found),
		"collisionCount", ptr.Deref(d.Status.CollisionCount, 0))
	return errors.Join(exists, a.run(ctx, planCollision(d)))
}

// edit changes a ReplicaSet as it was observed, or as an earlier step of this sync left it.
func (a *applier) edit(ctx context.Context, s editReplicaSet) error {
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
	a.latest[written.Name] = written
	a.record(s.Event)
	return nil
}

// delete deletes a ReplicaSet of the history, unless it has changed since it was observed.
//
// Differs: kube-controller-manager deletes by name alone, even a ReplicaSet that was scaled up in the meantime.
func (a *applier) delete(ctx context.Context, rs *appsv1.ReplicaSet) error {
	unchanged := client.Preconditions{UID: ptr.To(rs.UID), ResourceVersion: ptr.To(rs.ResourceVersion)}
	err := a.client.Delete(ctx, rs, unchanged)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete replica set %s: %w", klog.KObj(rs), err)
	}
	return nil
}

func (a *applier) updateStatus(ctx context.Context, s updateStatus) error {
	d := a.observed.Deployment.DeepCopy()
	d.Status = s.Status
	if s.Revision != "" {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, replicasets.RevisionAnnotation, s.Revision)
	}
	if err := a.client.Status().Update(ctx, d); err != nil {
		return fmt.Errorf("update status of deployment %s: %w", klog.KObj(d), err)
	}
	a.noteDeployment(d)
	return nil
}

func (a *applier) rollBack(ctx context.Context, s rollBack) error {
	d := a.observed.Deployment.DeepCopy()
	d.Annotations = s.Annotations
	if s.Template != nil {
		d.Spec.Template = *s.Template
	}
	if err := a.client.Update(ctx, d); err != nil {
		return fmt.Errorf("roll back deployment %s: %w", klog.KObj(d), err)
	}
	a.noteDeployment(d)
	a.record(s.Event)
	return nil
}

// noteDeployment records that the Deployment was written. A write that changed nothing causes no event and so no
// further sync, therefore this sync goes on.
func (a *applier) noteDeployment(d *appsv1.Deployment) {
	if d.ResourceVersion != a.observed.Deployment.ResourceVersion {
		a.deploymentWritten = true
	}
}
