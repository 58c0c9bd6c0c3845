package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/examples/operators/projects/purge"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// cleanUp takes one step in the cleanup of a deleted Project. The condition records the step, and when the cleanup
// began, so that another process can continue.
func (r *projectReconciler) cleanUp(ctx context.Context, p *api.Project) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(p, api.Finalizer) {
		return ctrl.Result{}, nil
	}
	plane := &infrastructure.ProjectControlPlane{}
	err := r.Get(ctx, client.ObjectKey{Name: p.Name}, plane)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("control plane: %w", err)
	}
	none := err != nil || !owns(p, plane)
	reason, s := "", sight{none: none, promised: !none && answers(plane)}
	if c := conditions.Get(p.Status.Conditions, api.ResourceCleanup); c != nil {
		reason = c.Reason
		s.since = time.Since(c.LastTransitionTime.Time)
	}
	if reason == api.ReasonCleanupComplete {
		return ctrl.Result{}, r.release(ctx, p, plane, none)
	}
	if reason != "" && !none {
		if exists, err := r.exists(ctx, p); !exists || err != nil {
			return ctrl.Result{}, err // its event triggers another reconcile
		}
		if s.left, s.err = r.purge(ctx, p, plane, s.since); s.err != nil {
			ctrl.LoggerFrom(ctx).Info("Control plane is not purged yet", "err", s.err)
		}
	}
	now, wait := cleanup(reason, s, r.options.PurgeTimeout)
	changed, err := r.set(ctx, p, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	if changed && now.Status == metav1.ConditionFalse {
		kind := corev1.EventTypeNormal
		if s.err != nil || !s.left.None() {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Eventf(p, kind, now.Reason, "%s", now.Message)
	}
	if wait && !changed {
		return ctrl.Result{RequeueAfter: r.options.Poll}, nil
	}
	return ctrl.Result{}, nil // the change of the condition triggers another reconcile
}

// exists asks the server whether the Project is still there. The cache of a process that has just started may be old.
// If another Project has its name by now, the control plane at that address is the other one's, and must not be purged.
func (r *projectReconciler) exists(ctx context.Context, p *api.Project) (bool, error) {
	latest := &api.Project{}
	err := r.Get(ctx, client.ObjectKeyFromObject(p), latest, client.Live)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("ask for the project before its purge: %w", err)
	}
	return err == nil && latest.UID == p.UID, nil
}

// purge makes one pass over the content of the control plane.
func (r *projectReconciler) purge(ctx context.Context, p *api.Project, plane *infrastructure.ProjectControlPlane,
	since time.Duration,
) (purge.Left, error) {
	ctx, cancel := context.WithTimeout(ctx, max(r.options.RequestTimeout, r.options.PurgeTimeout-since))
	defer cancel()
	config, err := r.configFor(p, plane)
	if err != nil {
		return purge.Left{}, err
	}
	return purge.Pass(ctx, config, purge.Options{Parallel: r.options.Parallel, Force: since >= r.options.ForceAfter})
}

// release deletes the control plane, and removes the Project's finalizer.
func (r *projectReconciler) release(ctx context.Context, p *api.Project, plane *infrastructure.ProjectControlPlane,
	none bool,
) error {
	if !none && plane.DeletionTimestamp == nil {
		if err := r.Delete(ctx, plane, client.OnlyThis(plane)); client.IgnoreNotFound(err) != nil &&
			!apierrors.IsConflict(err) {
			return fmt.Errorf("delete the control plane: %w", err)
		}
	}
	before := p.DeepCopyObject().(*api.Project)
	controllerutil.RemoveFinalizer(p, api.Finalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, p, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}
