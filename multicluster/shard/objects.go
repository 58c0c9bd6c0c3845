package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/workctx"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// ObjectsOptions configures [Objects].
type ObjectsOptions struct {
	// Name names the objects: "pods", or the name of the controller. Required, and unique among the Objects of one
	// fleet.
	Name string
	// Parts is the number of parts that the objects are split into. Each part is served by one replica at a time, so
	// there should be a few times as many parts as replicas, for equal shares. Each part has a Lease and, if the server
	// supports shards, a watch of its own. Zero means 16; at most 256. It must not change while any replica runs.
	Parts int
	// ByNamespace keeps all objects of a namespace in one part. Otherwise an object's UID determines its part.
	ByNamespace bool
	// DrainTimeout is how long work in flight may continue when a part moves, before it is cancelled. Zero means 10 s.
	// When the process stops, the manager's deadline applies.
	DrainTimeout time.Duration
}

const (
	maxParts = 256
	// abandonAfter is how long work may take to return after its context was cancelled.
	abandonAfter = 2 * time.Second
)

// Objects spreads the objects of one cluster over replicas. A hash splits them into parts. Each part is served by the
// replica that holds its Lease, by the rules of [multicluster.Tenure]. See [Part] for how a controller gets its
// objects.
type Objects struct {
	owner   *Owner
	options ObjectsOptions
}

// NewObjects returns the objects that owner spreads over replicas. It starts nothing. The owner must run for longer
// than they do, as [Owner.RunAround] ensures.
//
// Errors: no name, too many parts.
func NewObjects(owner *Owner, o ObjectsOptions) (*Objects, error) {
	o.Parts = cmp.Or(o.Parts, 16)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 10*time.Second)
	switch {
	case o.Name == "":
		return nil, errors.New("objects to share: Name is empty")
	case o.Parts < 1 || o.Parts > maxParts:
		return nil, fmt.Errorf("objects to share: Parts is %d; want 1 to %d", o.Parts, maxParts)
	}
	return &Objects{owner: owner, options: o}, nil
}

// RunAround runs the owner around run: ctx ends run, and the owner ends after run has returned and its leases are
// released.
func (o *Owner) RunAround(ctx context.Context, run func(ctx context.Context) error) error {
	ownerCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended := make(chan error, 1) // gets what Run returns, once
	go func() { ended <- o.Run(ownerCtx) }()
	defer context.AfterFunc(ctx, o.Leave)()
	err := run(ctx)
	end()
	return errors.Join(err, <-ended)
}

// Run calls work for every part that this replica serves, until ctx is done. It returns when all work has ended and the
// parts are released.
//
// Run calls work once for each period in which this replica serves a part, in a goroutine of its own. work starts with
// all objects of the part, as a controller does. Its context ends when the part moves to another replica: work must
// then accept nothing new, let what is in flight end, and return. [reconcile.Controller].Run does so: work in flight
// has until DrainTimeout, and no time at all if the lease is lost. After that, writes with its context through a client
// of the manager fail; for other writes, work must call [Part.Check] first. If work returns an error or returns early,
// Run calls it again. If the error is a [reconcile.StuckError], the lease is left to expire.
//
// Errors: other replicas have split the objects in another way.
func (s *Objects) Run(ctx context.Context, work func(ctx context.Context, p *Part) error) error {
	if err := s.checkSplit(ctx); err != nil {
		return fmt.Errorf("share %s: %w", s.options.Name, err)
	}
	inFlight, release := workctx.From(ctx, s.options.DrainTimeout)
	defer release()
	var parts sync.WaitGroup
	for i := range s.options.Parts {
		parts.Go(func() { s.runPart(ctx, inFlight, i, work) })
	}
	parts.Wait()
	return nil
}

// checkSplit checks that all replicas split the objects alike. Otherwise an object could be in two parts at a time.
func (s *Objects) checkSplit(ctx context.Context) error {
	o := s.owner
	want := fmt.Sprintf("%d parts by %s", s.options.Parts, s.field())
	fresh := o.leaseWith(key{splitLease, s.options.Name}, nil, "")
	fresh.Annotations[SplitAnnotation] = want
	for ctx.Err() == nil {
		lease, err := o.read(ctx, fresh.Name)
		if err == nil && lease == nil {
			lease, err = fresh, o.write(ctx, ctx, nil, fresh)
		}
		switch {
		case err == nil && lease.Annotations[SplitAnnotation] == want:
			return nil
		case err == nil:
			return fmt.Errorf(
				"they are split into %s, not %s; to change that, stop all replicas and delete the Lease %s/%s",
				lease.Annotations[SplitAnnotation], want, lease.Namespace, lease.Name,
			)
		case !isOutdated(err):
			klog.FromContext(ctx).Error(err, "Cannot check yet how other replicas split the objects",
				"objects", s.options.Name)
		}
		sleep(ctx, nil, o.options.RetryPeriod)
	}
	return nil
}

// runPart serves one part whenever this replica holds it, until ctx is done.
func (s *Objects) runPart(ctx, inFlight context.Context, index int, work func(context.Context, *Part) error) {
	k := key{partLease, fmt.Sprintf("%s/%d-of-%d", s.options.Name, index, s.options.Parts)}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "part", k.name)
	ctx = klog.NewContext(ctx, logger)
	for ctx.Err() == nil {
		tenure, err := s.owner.acquire(ctx, k,
			func(why string) { logger.V(2).Info("Part is not served here", "reason", why) })
		if err != nil {
			continue
		}
		logger.V(2).Info("Part is served here")
		err = s.serve(ctx, inFlight, &Part{Index: index, Of: s.options.Parts, field: s.field(), tenure: tenure}, work)
		if err != nil {
			logger.Error(err, "Work on a part failed; starting it again")
			sleep(ctx, nil, s.owner.options.RetryPeriod)
		}
	}
}

// serve calls work for one tenure, and releases the tenure.
func (s *Objects) serve(ctx, process context.Context, p *Part, work func(context.Context, *Part) error) error {
	inFlight, cancel := context.WithCancel(process)
	defer cancel()
	intake, stop := context.WithCancel(workctx.With(leader.WithFence(ctx, p.tenure.Check), inFlight))
	defer stop()
	returned := make(chan error, 1) // gets what work returns, once
	go func() { returned <- work(intake, p) }()

	var err error
	early := false
	select {
	case err = <-returned:
		early = true
	case <-ctx.Done():
	case <-p.tenure.Ending():
	case <-p.tenure.Lost():
	}
	if !early {
		stop()
		err = s.drain(p.tenure, inFlight, cancel, returned)
	}
	var stuck error
	if _, isStuck := errors.AsType[*reconcile.StuckError](err); isStuck || errors.Is(err, errAbandoned) {
		stuck = err
	}
	release, done := context.WithTimeout(context.WithoutCancel(ctx), s.owner.options.RenewDeadline)
	defer done()
	p.tenure.Release(release, stuck)
	switch {
	case errors.Is(err, errAbandoned):
		<-returned // Run must not return while work is running
	case early && err == nil:
		return errors.New("it returned while its part is still served here")
	case early:
		return err
	}
	return stuck
}

// errAbandoned is the error of work that did not return although it was cancelled.
var errAbandoned = errors.New("work did not return after it was cancelled")

// drain waits for work to return: as long as the options and the process allow, and not at all if the tenure is lost.
func (s *Objects) drain(t multicluster.Tenure, inFlight context.Context, cancel func(), returned <-chan error) error {
	select {
	case err := <-returned:
		return err
	case <-t.Lost():
	case <-inFlight.Done():
	case <-time.After(s.options.DrainTimeout):
	}
	cancel()
	select {
	case err := <-returned:
		return err
	case <-time.After(abandonAfter):
		return errAbandoned
	}
}
