package multicluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/ownwrites"
)

// clusterName is a name in the fleet: the last announcement under it, and the incarnation that has the name now. There
// is one incarnation at a time. Only the name's one goroutine makes and ends incarnations, so it does all the waiting.
type clusterName struct {
	fleet *Manager
	name  string

	// Guarded by the fleet's lock.

	by *announcer
	// want is the last announcement; nil when the cluster left.
	want *Announcement
	// round is the provider's run that announced the name last.
	round int
	// changed has capacity 1: a token tells the goroutine that want has changed. The announcing goroutine sends; never
	// closed.
	changed chan struct{}
	// relabeled has capacity 1: a token tells the goroutine that the labels have changed, so that controllers apply
	// their filters again. The announcing goroutine sends; never closed.
	relabeled chan struct{}
	// end cancels the life of the incarnation once want no longer describes it; nil when there is none.
	end context.CancelCauseFunc
	// serving is the announcement that the incarnation was made for; nil when there is none.
	serving *Announcement
	// incarnation has the name now; nil before its clients are made and after it has gone.
	incarnation *incarnation

	// state is the cluster's state, since when it was entered, and reason why. attempts counts the attempts to reach
	// the cluster since it was last Live.
	state    State
	since    time.Time
	reason   string
	attempts int
}

// The reasons for which a cluster leaves a state, as metrics show them.
var (
	errLeft     = errors.New("left the fleet")
	errReplaced = errors.New("replaced by another cluster or endpoint")
	errNotReady = errors.New("not ready any more")
	errStopping = errors.New("the process stops")
	errHandOver = errors.New("handed over to another replica")
	errLost     = errors.New("the right to serve it was lost")
)

// newClusterName returns the record of a name that was announced for the first time.
func newClusterName(m *Manager, r *round, a *Announcement) *clusterName {
	return &clusterName{
		fleet: m, name: a.Name, by: r.announcer, want: a, round: r.number,
		changed: make(chan struct{}, 1), relabeled: make(chan struct{}, 1),
	}
}

// sameCluster reports whether an incarnation that was made for a can go on for b.
func sameCluster(a, b *Announcement) bool {
	return b.NotReady == "" && a.Identity == b.Identity && a.Namespace == b.Namespace &&
		reflect.DeepEqual(static(a.Config), static(b.Config))
}

// static returns a copy of a config without the fields that cannot be compared.
func static(c *rest.Config) *rest.Config {
	if c == nil {
		return nil
	}
	c = rest.CopyConfig(c)
	c.Transport, c.WrapTransport, c.Dial, c.Proxy = nil, nil, nil, nil
	c.RateLimiter, c.WarningHandler, c.WarningHandlerWithContext, c.AuthConfigPersister = nil, nil, nil, nil
	c.NegotiatedSerializer = nil
	return c
}

// announceLocked stores an announcement, and ends an incarnation that it does not describe. Nil: the cluster leaves.
func (s *clusterName) announceLocked(a *Announcement) {
	s.want = a
	if s.serving != nil && s.end != nil {
		switch {
		case a == nil:
			s.end(errLeft)
		case a.NotReady != "":
			s.end(errNotReady)
		case !sameCluster(s.serving, a):
			s.end(errReplaced)
		}
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// run returns when the name is free or ctx is done. work ends when reconciles in flight may not go on.
func (s *clusterName) run(ctx, work context.Context) {
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "cluster", s.name))
	for ctx.Err() == nil {
		a, free := s.next()
		switch {
		case free:
			return
		case a == nil:
			s.move(ctx, Gone, errLeft.Error())
		case a.NotReady != "":
			s.move(ctx, Waiting, "not ready: "+a.NotReady)
			select {
			case <-s.changed:
			case <-ctx.Done():
			}
		default:
			s.serve(ctx, work, a)
		}
	}
}

// next returns the announcement to serve; nil when there is none. When the cluster left, and is Gone or never had a
// state, the name is free: next deletes it from the fleet.
func (s *clusterName) next() (a *Announcement, free bool) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	if free = s.want == nil && (s.state == Gone || s.since.IsZero()); free {
		delete(s.fleet.names, s.name)
	}
	return s.want, free
}

// begin returns a context that ends when a no longer describes the wanted cluster.
func (s *clusterName) begin(ctx context.Context, a *Announcement) (context.Context, context.CancelCauseFunc) {
	life, end := context.WithCancelCause(ctx)
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	s.serving, s.end = a, end
	if s.want == nil {
		end(errLeft)
	} else if !sameCluster(a, s.want) {
		end(errReplaced)
	}
	return life, end
}

// serve makes one incarnation and returns when it has gone. It ends when a no longer describes the wanted cluster, the
// tenure ends, or ctx is done.
func (s *clusterName) serve(ctx, work context.Context, a *Announcement) {
	life, end := s.begin(ctx, a)
	defer end(nil)
	tenure, err := s.acquire(life)
	if err != nil {
		return
	}
	ends := func() {}
	if tenure != nil {
		var watch sync.WaitGroup
		watch.Go(func() { watchTenure(life, tenure, end) })
		ends = func() { end(nil); watch.Wait() }
	}
	left := s.live(life, work, a, tenure)
	ends()
	if tenure != nil {
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		tenure.Release(release, left)
	}
}

// watchTenure ends the life of an incarnation when its tenure ends.
func watchTenure(life context.Context, t Tenure, end context.CancelCauseFunc) {
	select {
	case <-life.Done():
	case <-t.Lost():
		end(errLost)
	case <-t.Ending():
		end(errHandOver)
	}
}

// acquire waits until this replica may serve the cluster. It fails only when life is over.
func (s *clusterName) acquire(life context.Context) (Tenure, error) {
	owner := s.fleet.options.Owner
	if owner == nil {
		return nil, nil
	}
	again := newRetries(s.fleet.options.JoinBackoff)
	for {
		s.move(life, Waiting, "whether this replica serves it is being found out")
		tenure, err := owner.Acquire(life, s.info(), func(why string) { s.move(life, Waiting, why) })
		if err == nil && tenure != nil {
			return tenure, nil
		}
		if life.Err() != nil {
			return nil, context.Cause(life)
		}
		s.move(life, Waiting, fmt.Sprintf("whether this replica serves it cannot be found out: %v", err))
		if !again.pause(life) {
			return nil, context.Cause(life)
		}
	}
}

func (s *clusterName) info() ClusterInfo {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	info := ClusterInfo{Name: s.name}
	if s.want != nil {
		info.Identity, info.Labels = s.want.Identity, s.want.Labels
	}
	return info
}

// live reaches the cluster, lets controllers work on it until life is over, and takes it apart. It returns an error if
// some reconciles did not end.
func (s *clusterName) live(life, work context.Context, a *Announcement, tenure Tenure) (left error) {
	s.move(life, Joining, "being reached")
	defer s.gone(life)
	inc := newIncarnation(s.name, s.name+"#"+strconv.FormatUint(s.fleet.incarnations.Add(1), 10), tenure)
	target, err := s.prepare(inc, a)
	if err != nil {
		s.failed(life, fmt.Errorf("its config cannot be used: %w", err))
		<-life.Done()
		return nil
	}
	defer target.close()
	if awaited := ownwrites.From(life); awaited != nil {
		awaited.Add(inc.record)
		defer awaited.Remove(inc.record)
	}
	caches := startCaches(life, inc.cluster)
	s.fleet.admit(s, inc)
	if s.reach(life, target) {
		inc.set(Live, "")
		s.move(life, Live, "")
		s.work(life, inc)
	}
	cause := causeOf(life)
	if inc.state() == Live {
		s.move(life, Draining, cause.Error())
		left = s.drain(work, inc, cause)
		caches.endSender()
	} else {
		inc.set(Draining, cause.Error())
	}
	inc.closed.Store(true)
	inc.stays.Store(errors.Is(cause, errStopping))
	s.fleet.dismiss(inc)
	caches.end()
	inc.set(Gone, cause.Error())
	return left
}

// work makes the controllers watch the cluster until life is over.
func (s *clusterName) work(life context.Context, inc *incarnation) {
	select {
	case <-s.relabeled: // No controller watched yet.
	default:
	}
	s.fleet.engage(inc)
	for {
		select {
		case <-s.relabeled:
			s.fleet.relabel(inc)
		case <-life.Done():
			return
		}
	}
}

// prepare makes the clients of an incarnation.
func (s *clusterName) prepare(inc *incarnation, a *Announcement) (*server, error) {
	if err := s.fleet.connect(inc, a); err != nil {
		return nil, err
	}
	return newServer(inc.cluster.config)
}

// causeOf returns the reason why life is over.
func causeOf(life context.Context) error {
	cause := context.Cause(life)
	for _, known := range []error{errLeft, errReplaced, errNotReady, errHandOver, errLost} {
		if errors.Is(cause, known) {
			return known
		}
	}
	return errStopping
}

// gone notes that there is no incarnation any more.
func (s *clusterName) gone(life context.Context) {
	s.fleet.mu.Lock()
	s.incarnation, s.serving, s.end = nil, nil, nil
	s.fleet.mu.Unlock()
	s.move(life, Gone, causeOf(life).Error())
}

// reach asks the cluster until it answers or life is over. It reports whether it answered.
func (s *clusterName) reach(life context.Context, target *server) bool {
	again := newRetries(s.fleet.options.JoinBackoff)
	for {
		attempt, cancel := context.WithTimeout(life, s.fleet.options.JoinTimeout)
		err := target.reach(attempt)
		cancel()
		if err == nil && life.Err() == nil {
			return true
		}
		if life.Err() != nil {
			return false
		}
		s.failed(life, err)
		if !again.pause(life) {
			return false
		}
	}
}

// drain waits for reconciles that are in flight, as long as the options and the process allow. It does not wait when
// the tenure is lost.
func (s *clusterName) drain(work context.Context, inc *incarnation, cause error) error {
	patience, cancel := context.WithCancel(work)
	defer cancel()
	switch timeout := s.fleet.options.DrainTimeout; {
	case errors.Is(cause, errLost) || timeout < 0 && !errors.Is(cause, errStopping):
		cancel()
	case !errors.Is(cause, errStopping):
		defer time.AfterFunc(timeout, cancel).Stop()
	}
	if inc.tenure != nil {
		lost := make(chan struct{}) // closed below when this function returns; nobody sends
		defer close(lost)
		go func() {
			select {
			case <-inc.tenure.Lost():
				cancel()
			case <-lost:
			}
		}()
	}
	err := inc.drain(patience.Done(), cause.Error())
	if err != nil {
		klog.FromContext(work).Error(err, "Cluster leaves although work for it is in flight", "cluster", s.name)
	}
	return err
}
