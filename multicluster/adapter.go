package multicluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/reconcile"
)

// Each makes a reconciler for a fleet of those that build makes, one for each incarnation of a cluster: what is written for one
// cluster, and holds a client, works on many without a change. A reconciler is let go when its cluster departs.
//
// Errors of build are those of the reconcile; it is called again with the next request.
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
	one, err := c.reconcilers.of(e, c)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reconciler of cluster %q: %w", r.Cluster, err)
	}
	return one.Reconcile(ctx, r.Request)
}

// reconcilers are those that were built for one cluster. They go with it.
type reconcilers struct {
	mu    sync.Mutex
	built map[*each]*building
}

// building is one that is built once; who comes meanwhile waits.
type building struct {
	mu  sync.Mutex
	one reconcile.Reconciler[reconcile.Request]
}

func (r *reconcilers) of(e *each, c *Cluster) (reconcile.Reconciler[reconcile.Request], error) {
	r.mu.Lock()
	if r.built == nil {
		r.built = map[*each]*building{}
	}
	b := r.built[e]
	if b == nil {
		b = &building{}
		r.built[e] = b
	}
	r.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.one != nil {
		return b.one, nil
	}
	one, err := e.build(c)
	if err == nil && misuse.IsNil(one) {
		err = errors.New("none was built")
	}
	if err == nil {
		b.one = one
	}
	return one, err
}

// One makes a reconciler for one cluster of one for a fleet: it is called with the requests of c, and finds c in its context. So a
// controller written for many runs on one, too; [ClusterOf] is the cluster of a manager.
func One(c *Cluster, r reconcile.Reconciler[Request]) reconcile.Reconciler[reconcile.Request] {
	if c == nil || misuse.IsNil(r) {
		panic("multicluster: One: the cluster or the reconciler is nil; ClusterOf makes a cluster of a manager")
	}
	return reconcile.Func[reconcile.Request](func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		return r.Reconcile(WithCluster(ctx, c), Request{Cluster: c.Name(), Request: request})
	})
}
