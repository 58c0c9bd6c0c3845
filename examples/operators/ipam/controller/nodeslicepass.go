package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// slicePass is one reconcile of a pool whose network's definitions exist and agree.
type slicePass struct {
	*sliceReconciler
	pool    *v1alpha1.NodeSlicePool
	nads    []*multus.NetworkAttachmentDefinition
	network *multus.SlicedNetwork
	parts   ranges.Slices
}

// create creates the pool. The server ignores the status in a create, so the status is written after that, or by the
// next pass if this one fails before.
func (p *slicePass) create(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	*p.pool = v1alpha1.NodeSlicePool{}
	p.pool.Namespace, p.pool.Name = key.Namespace, key.Name
	p.pool.Spec = v1alpha1.NodeSlicePoolSpec{Range: p.network.Range, SliceSize: p.network.SliceSize}
	if err := controllerutil.SetControllerReference(p.nads[0], p.pool, p.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := p.own(); err != nil {
		return ctrl.Result{}, err
	}
	if err := p.Create(ctx, p.pool); err != nil {
		return ctrl.Result{}, fmt.Errorf("create NodeSlicePool: %w", err)
	}
	p.recorder.Eventf(p.pool, corev1.EventTypeNormal, "Created", "range %s, slice size %s", p.pool.Spec.Range,
		p.pool.Spec.SliceSize)
	done := ready(ReasonPoolCreated, "created with range %s, slice size %s", p.pool.Spec.Range, p.pool.Spec.SliceSize)
	return p.assign(ctx, &done)
}

// update updates the pool to what the definitions say.
func (p *slicePass) update(ctx context.Context) (ctrl.Result, error) {
	helper, err := controllerutil.NewPatchHelper(p, p.pool)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := p.own(); err != nil {
		return ctrl.Result{}, err
	}
	wanted := v1alpha1.NodeSlicePoolSpec{Range: p.network.Range, SliceSize: p.network.SliceSize}
	changed := p.pool.Spec != wanted
	p.pool.Spec = wanted
	if err := helper.Patch(ctx, p.pool); err != nil {
		return ctrl.Result{}, err
	}
	if !changed {
		return p.assign(ctx, nil)
	}
	p.recorder.Eventf(p.pool, corev1.EventTypeNormal, "SpecUpdated", "range %s, slice size %s", wanted.Range,
		wanted.SliceSize)
	done := ready(ReasonPoolUpdated, "updated range to %s, slice size %s", wanted.Range, wanted.SliceSize)
	return p.assign(ctx, &done)
}

// own makes every definition of the network an owner, so that the pool goes with the last of them.
func (p *slicePass) own() error {
	for _, nad := range p.nads {
		if isOwner(p.pool, nad) {
			continue
		}
		if err := controllerutil.SetOwnerReference(nad, p.pool, p.Scheme()); err != nil {
			return err
		}
	}
	return nil
}

func isOwner(pool *v1alpha1.NodeSlicePool, nad *multus.NetworkAttachmentDefinition) bool {
	for _, ref := range pool.OwnerReferences {
		if ref.UID == nad.UID {
			return true
		}
	}
	return false
}

// assign gives the nodes their slices, and writes the status. done is what this pass did before, if anything.
func (p *slicePass) assign(ctx context.Context, done *state) (ctrl.Result, error) {
	nodes, err := p.nodes(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	a, err := assign(p.parts, p.pool.Status.Allocations, nodes, func(live bool) (map[int]string, error) {
		return p.users(ctx, p.pool.Namespace, p.network.Network, p.parts, live)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	helper, err := controllerutil.NewPatchHelper(p, p.pool)
	if err != nil {
		return ctrl.Result{}, err
	}
	s, result := p.state(a, len(nodes), done)
	a.fillSlices(&p.pool.Status, p.parts)
	news := s.set(&p.pool.Status.Conditions, p.pool.Generation)
	if err := helper.Patch(ctx, p.pool); err != nil {
		return ctrl.Result{}, err
	}
	if news && s.reason == ReasonPoolFull {
		p.recorder.Eventf(p.pool, s.eventType(), s.reason, "%s", s.message)
	}
	p.options.Metrics.sliced(client.ObjectKeyFromObject(p.pool), p.pool.Status.AssignedSlices,
		p.pool.Status.TotalSlices)
	return result, nil
}

// state returns the state of the pool. Nodes that wait for slices come first, then what was done, as long as it is
// shown.
func (p *slicePass) state(a assignment, nodes int, done *state) (state, ctrl.Result) {
	switch {
	case len(a.waiting) > 0 && a.kept > 0:
		return reconciling(ReasonReconciling,
			"%d of %d nodes wait for slices of nodes that are gone, whose addresses are in use: %s",
			len(a.waiting), nodes, some(a.waiting)), ctrl.Result{}
	case len(a.waiting) > 0:
		return stalled(ReasonPoolFull, "no slice is free for %d of %d nodes: %s", len(a.waiting), nodes,
			some(a.waiting)), ctrl.Result{}
	case done != nil:
		return *done, ctrl.Result{RequeueAfter: p.options.ShowFor}
	}
	if s, rest := announced(p.pool.Status.Conditions, p.options.ShowFor); rest > 0 {
		return s, ctrl.Result{RequeueAfter: rest}
	}
	return ready(ReasonReconciled, "all nodes assigned to slices"), ctrl.Result{}
}
