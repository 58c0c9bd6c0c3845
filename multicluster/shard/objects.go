package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/workctx"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
)

// ObjectsOptions configures [Objects].
type ObjectsOptions struct {
	// Name names what is shared: "pods", or the controller. Required, and unique among the Objects of one fleet.
	Name string
	// Parts is how many parts the objects are split into; each is served by one replica at a time. It bounds how many
	// replicas have work, and should be a few times that, for equal shares; each part has a Lease and, where the
	// server has shards, a watch of its own. Zero means 16; at most 256. It cannot be changed while any replica runs.
	Parts int
	// ByNamespace keeps the objects of a namespace together. Otherwise the UID decides where an object belongs.
	ByNamespace bool
	// DrainTimeout is how long work in flight may go on when a part moves, before it is cancelled. Zero means 10 s.
	// When the process stops, its manager's deadline counts.
	DrainTimeout time.Duration
}

const (
	defaultParts        = 16
	mostParts           = 256
	defaultDrainTimeout = 10 * time.Second
	// abandonAfter is how long work may take to return once its context is cancelled.
	abandonAfter = 2 * time.Second
)

// SplitAnnotation is on the Lease that says how objects are split, which all replicas have to agree on.
const SplitAnnotation = "multicluster.flyball.dev/split"

// splitLease is the kind of that Lease. Nobody holds it.
const splitLease kind = "split"

// Objects spreads the objects of one cluster over replicas: they are split into parts by a hash, each of which is
// served by the replica that holds its Lease, by the rules of [multicluster.Tenure]. See [Part] for how a controller
// is told its objects.
type Objects struct {
	owner   *Owner
	options ObjectsOptions
}

// NewObjects returns the objects that owner shares out. Nothing is started. The owner has to run for longer than they
// do: [Owner.RunAround] sees to that.
//
// Errors: no name, too many parts.
func NewObjects(owner *Owner, o ObjectsOptions) (*Objects, error) {
	if o.Parts == 0 {
		o.Parts = defaultParts
	}
	setDefault(&o.DrainTimeout, defaultDrainTimeout)
	switch {
	case o.Name == "":
		return nil, errors.New("objects to share: there is no name")
	case o.Parts < 1 || o.Parts > mostParts:
		return nil, fmt.Errorf("objects to share: %d parts; it can be 1 to %d", o.Parts, mostParts)
	}
	return &Objects{owner: owner, options: o}, nil
}

// RunAround runs the owner as long as run, and until what that has taken is released: ctx ends run, and the owner
// after it.
func (o *Owner) RunAround(ctx context.Context, run func(ctx context.Context) error) error {
	owning, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended := make(chan error, 1) // gets what Run returns, once
	go func() { ended <- o.Run(owning) }()
	defer context.AfterFunc(ctx, o.Leave)()
	err := run(ctx)
	end()
	return errors.Join(err, <-ended)
}

// Run has work done for every part that falls to this replica, until ctx is done, and returns when all has ended and
// the parts are released.
//
// work is called for each time in which a part is served here, in a goroutine of its own; it begins with all objects
// of the part, as a controller does. Its context is over when the part is to be served elsewhere: work then ends
// intake, lets what is in flight end, and returns. [reconcile.Controller].Run does so: work in flight has until
// DrainTimeout, and none when the lease is lost. Writes with its context through a client of the manager do not begin
// when the lease is lost; others have to ask [Part.Check]. An error, or an early return, makes it be called again; a
// [reconcile.StuckError] has the lease run out.
//
// Errors: when other replicas have split the objects in another way.
func (s *Objects) Run(ctx context.Context, work func(ctx context.Context, p *Part) error) error {
	if err := s.agree(ctx); err != nil {
		return fmt.Errorf("share %s: %w", s.options.Name, err)
	}
	inFlight, release := workctx.From(ctx, s.options.DrainTimeout)
	defer release()
	var parts sync.WaitGroup
	for i := range s.options.Parts {
		parts.Go(func() { s.live(ctx, inFlight, i, work) })
	}
	parts.Wait()
	return nil
}

// agree makes sure that all replicas split the objects alike: else an object would be in two parts at a time.
func (s *Objects) agree(ctx context.Context) error {
	o := s.owner
	k := key{splitLease, s.options.Name}
	want := fmt.Sprintf("%d parts by %s", s.options.Parts, s.field())
	for ctx.Err() == nil {
		lease, err := o.current(ctx, leaseName(o.options.Fleet, k))
		if err == nil && lease == nil {
			lease, err = o.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
				Namespace: o.options.Namespace, Name: leaseName(o.options.Fleet, k),
				Labels:      map[string]string{FleetLabel: o.options.Fleet, KindLabel: string(splitLease)},
				Annotations: map[string]string{NameAnnotation: k.name, SplitAnnotation: want},
			}}, metav1.CreateOptions{})
		}
		if err == nil {
			if is := lease.Annotations[SplitAnnotation]; is != want {
				return fmt.Errorf(
					"they are split into %s, not %s; to change that, stop all replicas and delete the Lease %s/%s", is,
					want, lease.Namespace, lease.Name,
				)
			}
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			klog.FromContext(ctx).Error(err, "Whether replicas split the objects alike cannot be found out yet",
				"objects", s.options.Name)
		}
		(&claim{}).wait(ctx, o.options.retryAfter())
	}
	return nil
}

// live is the life of one part in this replica.
func (s *Objects) live(ctx, inFlight context.Context, index int, work func(context.Context, *Part) error) {
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
			logger.Error(err, "Work for a part failed, and begins anew")
			(&claim{}).wait(ctx, s.owner.options.retryAfter())
		}
	}
}

// serve has work done in one tenure, and releases it.
func (s *Objects) serve(ctx, process context.Context, p *Part, work func(context.Context, *Part) error) error {
	inFlight, cancel := context.WithCancel(process)
	defer cancel()
	intake, stop := context.WithCancel(workctx.With(leader.WithFence(ctx, p.tenure.Check), inFlight))
	defer stop()
	returned := make(chan error, 1) // gets what work returns, once
	go func() { returned <- work(intake, p) }()

	err, returnedEarly := s.untilOver(ctx, p.tenure, returned)
	if !returnedEarly {
		stop()
		err = s.drain(p.tenure, inFlight, cancel, returned)
	}
	var stuck *reconcile.StuckError
	release, done := context.WithTimeout(context.WithoutCancel(ctx), s.owner.options.RenewDeadline)
	defer done()
	switch {
	case errors.Is(err, errAbandoned):
		p.tenure.Release(release, err)
		<-returned // whoever runs us is told that all has ended only when it has
	case errors.As(err, &stuck):
		p.tenure.Release(release, stuck)
	default:
		p.tenure.Release(release, nil)
	}
	if returnedEarly && err == nil {
		err = errors.New("it returned although its part is served here")
	}
	if !returnedEarly && !errors.As(err, &stuck) && !errors.Is(err, errAbandoned) {
		err = nil
	}
	return err
}

// errAbandoned says that work did not return although it was cancelled.
var errAbandoned = errors.New("work did not return after it was cancelled")

// untilOver waits for the end of a tenure, or for work to return before that.
func (s *Objects) untilOver(ctx context.Context, t *tenure, returned <-chan error) (err error, early bool) {
	select {
	case err := <-returned:
		return err, true
	case <-ctx.Done():
	case <-t.Ending():
	case <-t.Lost():
	}
	return nil, false
}

// drain waits for work to return: as long as the options and the process allow, and not at all when the tenure is lost.
func (s *Objects) drain(t *tenure, inFlight context.Context, cancel func(), returned <-chan error) error {
	patience := time.NewTimer(s.options.DrainTimeout)
	defer patience.Stop()
	select {
	case err := <-returned:
		return err
	case <-t.Lost():
	case <-inFlight.Done():
	case <-patience.C:
	}
	cancel()
	abandon := time.NewTimer(abandonAfter)
	defer abandon.Stop()
	select {
	case err := <-returned:
		return err
	case <-abandon.C:
		return errAbandoned
	}
}
