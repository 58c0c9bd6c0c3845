package multicluster

import (
	"context"
	"errors"
)

// Owner decides which clusters this replica serves, where several replicas share a fleet. Without one, all are served.
//
// It may also have Leave(), which is called when the process stops, before clusters drain: the other replicas should
// be ready to take what is released. It must not wait.
//
// The local cluster is not asked about. Package shard has an Owner.
type Owner interface {
	// Run does what is to be done for all clusters, until ctx is done: finds out who the other replicas are, say. Its
	// context outlives those of the tenures: it ends when all of them are released.
	Run(ctx context.Context) error
	// Acquire waits until this replica may serve the cluster, as long as it takes. It is called by the cluster's
	// goroutine, again after every tenure, and given up by ctx when the cluster leaves or is not ready any more. say
	// tells, as often as there is something new, why the cluster is not served here ("served by replica-2"); it is
	// shown in the cluster's status.
	//
	// Errors: when it fails without ctx being done it is called again, with backoff.
	Acquire(ctx context.Context, cluster ClusterInfo, say func(why string)) (Tenure, error)
}

// Tenure is a time in which this replica serves a cluster. Between two tenures of one cluster, by whichever replicas,
// no work for it is in flight:
//
//	Ending ─▶ the cluster drains: nothing new is begun, what is in flight may end ─▶ Release
//	Lost   ─▶ what is in flight is cancelled at once, no write begins any more    ─▶ Release
//
// The fleet asks Check before it hands out a request, and before every write: those through the cluster's own client
// whatever their context, those to other clusters by the context of the reconcile.
type Tenure interface {
	// Ending is closed when the cluster shall be served elsewhere: when it has drained, Release is called. Never nil.
	Ending() <-chan struct{}
	// Lost is closed when this replica must not serve the cluster any more, or soon cannot know that it may. Never nil.
	Lost() <-chan struct{}
	// Check is nil while a write may begin. It is called for each, so it must be cheap: a look at the clock, not a
	// request.
	Check() error
	// Release is called once, when nothing of this tenure is in flight: the cluster may be served by another replica.
	// With an error, something is: reconciles that do not return. The lease is not to be given back then, it has to
	// run out. ctx bounds the time it may take.
	Release(ctx context.Context, stuck error)
}

// ErrNotOwner is what writes fail with whose cluster this replica does not serve any more.
var ErrNotOwner = errors.New("this replica does not serve the cluster any more")
