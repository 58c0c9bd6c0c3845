package garbagecollector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/reconcile"
)

// applyEffects records the events and queues the keys that a change of the graph asks for.
func (c *collector) applyEffects(ctx context.Context, e effects) {
	for _, r := range e.invalidOwnerRefs {
		klog.FromContext(ctx).V(2).Info("Owner reference names an object in another namespace", "object", r.dependent,
			"owner", ownerIdentity(r.owner, r.dependent.namespace))
		c.recorder.Eventf(&corev1.ObjectReference{
			APIVersion: r.apiVersion, Kind: r.dependent.kind.Kind,
			Namespace: r.dependent.namespace, Name: r.dependent.name, UID: r.dependent.uid,
		}, corev1.EventTypeWarning, "OwnerRefInvalidNamespace",
			"ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q", r.owner.APIVersion,
			r.owner.Kind, r.dependent.namespace, r.owner.Name, r.owner.UID, r.dependent.namespace)
	}
	for _, key := range e.deletes {
		c.deletes.Enqueue(key)
	}
	for _, key := range e.delayedDeletes {
		c.deletes.EnqueueAfter(key, c.graph.nextCheck(key.uid))
	}
	for _, uid := range e.orphans {
		c.orphans.Enqueue(key{uid: uid, orphan: true})
	}
}

// attemptToDelete reads an object and its owners from the API server, and then deletes it, patches it or leaves it.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector.go, attemptToDeleteWorker
func (c *collector) attemptToDelete(ctx context.Context, k key) (reconcile.Result, error) {
	v, found := c.graph.view(k)
	if !found || v.deleting && !v.deletingDependents {
		return reconcile.Result{}, nil // The dependents of an object that is being deleted are queued when it is gone.
	}
	latest, err := c.remote.get(ctx, v.id)
	if apierrors.IsNotFound(err) || (err == nil && latest.UID != v.id.uid) {
		c.applyEffects(ctx, c.graph.virtualDelete(v.id))
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("get %s: %w", v.id, err)
	}
	if err := c.planAndApply(ctx, v, latest); err != nil {
		return reconcile.Result{}, err
	}
	if v.virtual {
		// The object exists, so a watch should show it soon. But if it is deleted before the watch begins, none does.
		return reconcile.Result{RequeueAfter: c.graph.nextCheck(k.uid)}, nil
	}
	return reconcile.Result{}, nil
}

// planAndApply makes the plan for an object that exists, and applies it.
func (c *collector) planAndApply(ctx context.Context, v view, latest *metav1.PartialObjectMetadata) error {
	if v.deletingDependents {
		return c.apply(ctx, v, latest, planWaiting(v))
	}
	owners, err := c.classify(ctx, v.id, latest.OwnerReferences)
	if err != nil {
		return err
	}
	if err := c.apply(ctx, v, latest, plan(v, latest, owners)); err != nil || len(owners.solid) > 0 {
		return err
	}
	return owners.unresolved
}

// classify asks the API server about each owner.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector.go, classifyReferences
func (c *collector) classify(ctx context.Context, dependent identity, refs []metav1.OwnerReference) (ownership, error) {
	var o ownership
	for _, ref := range refs {
		owner, err := c.owner(ctx, dependent, ref)
		if err != nil {
			err = fmt.Errorf("get owner %s: %w", ownerIdentity(ref, dependent.namespace), err)
		}
		switch {
		case isUnresolved(err):
			o.unresolved = err
		case err != nil:
			return ownership{}, err
		case owner == nil:
			o.dangling = append(o.dangling, ref)
		case isWaiting(owner):
			o.waiting = append(o.waiting, ref)
		default:
			o.solid = append(o.solid, ref)
		}
	}
	return o, nil
}

// owner returns the object that ref names, or nil if it does not exist. It remembers owners that do not exist.
func (c *collector) owner(ctx context.Context, dependent identity,
	ref metav1.OwnerReference,
) (*metav1.PartialObjectMetadata, error) {
	inCluster, inNamespace := ownerIdentity(ref, ""), ownerIdentity(ref, dependent.namespace)
	if c.graph.isAbsent(inCluster) || c.graph.isAbsent(inNamespace) {
		return nil, nil
	}
	_, namespaced, err := c.remote.resource(inCluster.kind, dependent.namespace)
	if err != nil {
		return nil, err
	}
	id := inCluster
	if namespaced {
		id = inNamespace
	}
	owner, err := c.remote.get(ctx, id)
	if apierrors.IsNotFound(err) || (err == nil && owner.UID != ref.UID) {
		c.graph.markAbsent(id)
		return nil, nil
	}
	return owner, err
}

// apply carries out one step.
func (c *collector) apply(ctx context.Context, v view, latest *metav1.PartialObjectMetadata, s step) error {
	logger := klog.FromContext(ctx)
	switch {
	case len(s.disown) > 0:
		logger.V(2).Info("Removing references to absent or waiting owners", "object", v.id, "owners", s.disown)
		if err := c.remote.disown(ctx, v.id, s.disown...); err != nil {
			return fmt.Errorf("remove owner references of %s: %w", v.id, err)
		}
	case s.remove != nil:
		if s.unblock {
			unblocked, err := c.remote.unblock(ctx, v.id, latest)
			if err != nil {
				return fmt.Errorf("unblock owners of %s: %w", v.id, err)
			}
			latest = unblocked
		}
		logger.V(2).Info("Deleting object that has no owner left", "object", v.id, "policy", *s.remove)
		return c.remove(ctx, v.id, latest, s.remove)
	case s.removeFinalizer:
		logger.V(2).Info("No dependent blocks the deletion any more", "object", v.id)
		if err := c.remote.removeFinalizer(ctx, v.id, metav1.FinalizerDeleteDependents); err != nil {
			return fmt.Errorf("remove finalizer from %s: %w", v.id, err)
		}
	}
	for _, d := range s.enqueue {
		c.deletes.Enqueue(key{uid: d.uid})
	}
	return nil
}

// remove deletes an object. If the object is already gone, remove takes it out of the graph.
func (c *collector) remove(ctx context.Context, id identity, latest *metav1.PartialObjectMetadata,
	policy *metav1.DeletionPropagation,
) error {
	err := c.remote.remove(ctx, id, latest, policy)
	if apierrors.IsNotFound(err) {
		c.applyEffects(ctx, c.graph.virtualDelete(id))
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	c.deleted.Add(1)
	return nil
}

// orphanParallelism is how many patches may be in flight for one owner.
const orphanParallelism = 20

// attemptToOrphan removes the references to an owner from all of its dependents, and then the owner's finalizer.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector.go, attemptToOrphanWorker
func (c *collector) attemptToOrphan(ctx context.Context, k key) (reconcile.Result, error) {
	v, found := c.graph.view(k)
	if !found {
		return reconcile.Result{}, nil
	}
	errs := make([]error, len(v.dependents))
	var patches errgroup.Group
	patches.SetLimit(orphanParallelism)
	for i, d := range v.dependents {
		patches.Go(func() error {
			if err := c.remote.disown(ctx, d.id, k.uid); err != nil && !apierrors.IsNotFound(err) {
				errs[i] = fmt.Errorf("orphan %s: %w", d.id, err)
			}
			return nil // so that all are tried
		})
	}
	_ = patches.Wait()
	retryable := slices.DeleteFunc(slices.Clone(errs), isUnresolved) // These come first, because a retry may help.
	if err := cmp.Or(errors.Join(retryable...), cmp.Or(errs...)); err != nil {
		return reconcile.Result{}, err
	}
	if err := c.remote.removeFinalizer(ctx, v.id, metav1.FinalizerOrphanDependents); err != nil {
		return reconcile.Result{}, fmt.Errorf("remove finalizer from %s: %w", v.id, err)
	}
	return reconcile.Result{}, nil
}
