package replicaset

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
)

// slowStart is the size of the first batch of creates. Each batch is twice as large as the one before, so a set whose
// pods are refused, for example by a quota, costs one futile request a sync and not hundreds.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, SlowStartInitialBatchSize
const slowStart = 1

// apply carries out p.
//
// Errors: the first failure.
func (r *reconciler) apply(ctx context.Context, o observed, p plan) error {
	switch {
	case p.create > 0:
		klog.FromContext(ctx).V(2).Info("Too few replicas", "object", klog.KObj(o.set), "need", desired(o.set),
			"creating", p.create)
		return r.createPods(ctx, o.set, p.create)
	case len(p.victims) > 0:
		klog.FromContext(ctx).V(2).Info("Too many replicas", "object", klog.KObj(o.set), "need", desired(o.set),
			"deleting", len(p.victims))
		return r.deletePods(ctx, o.set, p.victims)
	default:
		return nil
	}
}

// createPods creates n pods in batches that double. A batch with a failure is the last. So is a batch that is refused
// because the namespace is being deleted, but that is not an error: no retry would succeed.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, manageReplicas and slowStartBatch
func (r *reconciler) createPods(ctx context.Context, set *appsv1.ReplicaSet, n int) error {
	pod, err := podFor(set)
	if err != nil {
		return err
	}
	for size := min(slowStart, n); size > 0; size = min(2*size, n) {
		if more, err := r.createBatch(ctx, set, pod, size); err != nil || !more {
			return err
		}
		n -= size
	}
	return nil
}

// createBatch creates size copies of pod in parallel, and reports whether to go on with the next batch.
func (r *reconciler) createBatch(ctx context.Context, set *appsv1.ReplicaSet, pod *corev1.Pod,
	size int,
) (more bool, err error) {
	created := make([]corev1.Pod, size)
	errs := inParallel(size, func(i int) error {
		created[i] = *pod // Create overwrites it with the answer.
		created[i].Namespace = set.Namespace
		return r.client.Create(ctx, &created[i])
	})
	refused := false
	for i, failure := range errs {
		switch {
		case failure == nil:
			r.recorder.Eventf(set, corev1.EventTypeNormal, reasonSuccessfulCreate, "Created pod: %v", created[i].Name)
		case apierrors.HasStatusCause(failure, corev1.NamespaceTerminatingCause):
			refused = true
		default:
			r.warn(ctx, set, reasonFailedCreate, "Error creating: %v", failure)
			err = first(err, failure)
		}
	}
	if refused {
		r.refused.add(set.UID)
	}
	return err == nil && !refused, err
}

// deletePods deletes victims in parallel. Each request names the pod's UID: it cannot hit another pod that has taken
// the name since the cache saw it. A pod that is already gone counts as deleted.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, manageReplicas
func (r *reconciler) deletePods(ctx context.Context, set *appsv1.ReplicaSet, victims []*corev1.Pod) error {
	errs := inParallel(len(victims), func(i int) error {
		return r.client.Delete(ctx, victims[i], client.Preconditions{UID: &victims[i].UID})
	})
	var err error
	for i, failure := range errs {
		switch {
		case failure == nil:
			r.recorder.Eventf(set, corev1.EventTypeNormal, reasonSuccessfulDelete, "Deleted pod: %v", victims[i].Name)
		case apierrors.IsNotFound(failure) || apierrors.IsConflict(failure): // conflict: another pod has the name
		default:
			r.warn(ctx, set, reasonFailedDelete, "Error deleting: %v", failure)
			err = first(err, fmt.Errorf("unable to delete pods: %w", failure))
		}
	}
	return err
}

// warn records a failure, unless the process is being stopped.
func (r *reconciler) warn(ctx context.Context, set *appsv1.ReplicaSet, reason, format string, err error) {
	if ctx.Err() == nil {
		r.recorder.Eventf(set, corev1.EventTypeWarning, reason, format, err)
	}
}

// writeStatus sets set's status and returns the set as written. It writes nothing if nothing changes. If a write fails,
// it tries once more on a fresh copy with the same counts: they are correct for the generation that status names.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_utils.go, updateReplicaSetStatus
func (r *reconciler) writeStatus(ctx context.Context, set *appsv1.ReplicaSet,
	status appsv1.ReplicaSetStatus,
) (*appsv1.ReplicaSet, error) {
	if set.Status.TerminatingReplicas == nil && r.dropsTerminating.Load() {
		status.TerminatingReplicas = nil
	}
	if sameStatus(set.Status, status) {
		return set, nil
	}
	written := set.DeepCopy()
	written.Status = status
	if err := r.client.Status().Update(ctx, written); err != nil {
		klog.FromContext(ctx).V(2).Info("Failed to update the status, will retry once", "object", klog.KObj(set),
			"err", err)
		written = &appsv1.ReplicaSet{}
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(set), written, client.Live); err != nil {
			return nil, fmt.Errorf("read replicaset to write its status: %w", err)
		}
		if written.UID != set.UID {
			return nil, fmt.Errorf("write status: replicaset %s was replaced: got uid %s, want %s", klog.KObj(set),
				written.UID, set.UID)
		}
		written.Status = status
		if err := r.client.Status().Update(ctx, written); err != nil {
			return nil, fmt.Errorf("write status: %w", err)
		}
	}
	if status.TerminatingReplicas != nil {
		r.dropsTerminating.Store(written.Status.TerminatingReplicas == nil)
	}
	return written, nil
}

// inParallel calls f concurrently for 0 … n-1 and returns the errors in order.
func inParallel(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errs
}

// first keeps the first of several errors, since the others are likely to be the same.
func first(have, next error) error {
	if have != nil {
		return have
	}
	return next
}
