package multicluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/reconcile"
)

// Each returns a reconciler for a fleet. It calls build once for each incarnation of a cluster and hands the requests
// of that incarnation to the reconciler that build returned. So a reconciler that is written for one cluster, and holds
// a client, works on many without a change. It is dropped when its cluster departs.
//
// Errors: when build fails, the reconcile fails with its error, and the next request calls build again.
func Each(build func(c *Cluster) (reconcile.Reconciler[reconcile.Request], error)) reconcile.Reconciler[Request] {
	if build == nil {
		panic("multicluster: Each: the function that builds reconcilers is nil")
	}
	return &each{build: build}
}

type each struct {
	build func(c *Cluster) (reconcile.Reconciler[reconcile.Request], error)
}

// Reconcile implements reconcile.Reconciler.
func (e *each) Reconcile(ctx context.Context, r Request) (reconcile.Result, error) {
	c, ok := ClusterFromContext(ctx)
	if !ok {
		return reconcile.Result{}, &ClusterError{Cluster: r.Cluster, State: Gone, Err: ErrClusterGone}
	}
	reconciler, err := c.reconcilers.get(ctx, e, c)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reconciler of cluster %q: %w", r.Cluster, err)
	}
	return reconciler.Reconcile(ctx, r.Request)
}

// reconcilers are the reconcilers that were built for one cluster. They are freed with it.
type reconcilers struct {
	mu    sync.Mutex
	built map[*each]*building
}

// building is a reconciler that is being built, or was.
type building struct {
	// done is closed by the reconcile that builds it, after one and err are set. Capacity 0; nobody sends.
	done       chan struct{}
	reconciler reconcile.Reconciler[reconcile.Request]
	err        error
}

// get returns the reconciler of e for a cluster. The first reconcile that asks builds it, with no lock held. Those that
// ask meanwhile wait for it and share its error.
func (r *reconcilers) get(ctx context.Context, e *each, c *Cluster) (reconcile.Reconciler[reconcile.Request], error) {
	r.mu.Lock()
	b := r.built[e]
	if b == nil {
		if r.built == nil {
			r.built = map[*each]*building{}
		}
		b = &building{done: make(chan struct{}), err: errors.New("the build function panicked")}
		r.built[e] = b
		r.mu.Unlock()
		return r.build(b, e, c)
	}
	r.mu.Unlock()
	select {
	case <-b.done:
		return b.reconciler, b.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// build builds a reconciler. It forgets one that fails, so that the next request tries again.
func (r *reconcilers) build(b *building, e *each, c *Cluster) (reconcile.Reconciler[reconcile.Request], error) {
	defer func() {
		if b.err != nil {
			r.mu.Lock()
			delete(r.built, e)
			r.mu.Unlock()
		}
		close(b.done)
	}()
	b.reconciler, b.err = e.build(c)
	if b.err == nil && misuse.IsNil(b.reconciler) {
		b.err = errors.New("the build function returned nil")
	}
	return b.reconciler, b.err
}

// One adapts a reconciler for a fleet to a single cluster: r is called with the requests of c and finds c in its
// context. So a controller that is written for many clusters runs on one, too. [ClusterOf] returns the cluster of a
// manager.
func One(c *Cluster, r reconcile.Reconciler[Request]) reconcile.Reconciler[reconcile.Request] {
	if c == nil || misuse.IsNil(r) {
		panic("multicluster: One: the cluster or the reconciler is nil; ClusterOf makes a cluster of a manager")
	}
	return reconcile.Func[reconcile.Request](func(ctx context.Context,
		request reconcile.Request,
	) (reconcile.Result, error) {
		return r.Reconcile(WithCluster(ctx, c), Request{Cluster: c.Name(), Request: request})
	})
}
