package multicluster

import (
	"context"
	"errors"
)

// Owner decides which clusters this replica serves when several replicas share a fleet. Without an Owner each replica
// serves all.
//
// An Owner is never asked about the local cluster. Package shard has an Owner.
type Owner interface {
	// Run does the work that concerns all clusters until ctx is done, such as finding the other replicas. ctx outlives
	// the tenures: it ends after all of them are released.
	Run(ctx context.Context) error
	// Acquire waits, as long as it takes, until this replica may serve the cluster. The cluster's goroutine calls it,
	// again after every tenure, and cancels ctx when the cluster leaves or is not ready any more. Acquire calls report
	// with the reason why the cluster is not served here ("served by replica-2"), as often as that changes. The
	// cluster's status shows it.
	//
	// Errors: after a failure without ctx being done it is called again, with backoff.
	Acquire(ctx context.Context, cluster ClusterInfo, report func(reason string)) (Tenure, error)
	// Leave is called when the process stops, before clusters drain, so that the other replicas can prepare to take the
	// clusters that will be released. It must not wait.
	Leave()
}

// Tenure is a time in which this replica serves a cluster. Between two tenures of one cluster, by any replicas, no work
// for it is in flight:
//
//	Ending ─▶ the cluster drains: no reconcile starts, those in flight may finish   ─▶ Release
//	Lost   ─▶ reconciles in flight are cancelled at once, no further write begins   ─▶ Release
//
// The fleet calls Check before it hands out a request, and before every write. For writes through the cluster's own
// client that holds whatever their context; for writes to other clusters the reconcile's context carries the check.
type Tenure interface {
	// Ending is closed when another replica is to serve the cluster. Release is called after the cluster has drained.
	// Never nil.
	Ending() <-chan struct{}
	// Lost is closed when this replica must not serve the cluster any more, or soon cannot be sure that it may. Never
	// nil.
	Lost() <-chan struct{}
	// Check returns nil while a write may begin. It is called for each write, so it must be cheap: a look at the clock,
	// not a request.
	Check() error
	// Release is called once. Without an error nothing of this tenure is in flight, and another replica may serve the
	// cluster. With an error some reconciles have not returned: then Release must not give the lease back, but let it
	// expire. ctx bounds the call.
	Release(ctx context.Context, stuck error)
}

// ErrNotOwner is the error of writes to a cluster that this replica does not serve any more.
var ErrNotOwner = errors.New("this replica does not serve the cluster any more")
