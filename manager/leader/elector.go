package leader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Options are the times of an [Elector]. The zero value is kube-controller-manager's.
//
// LeaseDuration > RenewDeadline > RetryPeriod × 1.2 must hold.
type Options struct {
	// LeaseDuration is how long candidates wait since they last saw the lease change. Whole seconds, for that is how it is
	// written into the lease. Zero means 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader goes on without a successful renewal. Zero means 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two renewals, and between two looks of a candidate, which adds up to a fifth at
	// random. Zero means 2 s.
	RetryPeriod time.Duration
	// Random returns numbers in [0,1). Nil means math/rand/v2; the simulator passes its own.
	Random func() float64
}

// Duration is LeaseDuration, or what zero means.
func (o Options) Duration() time.Duration { return o.withDefaults().LeaseDuration }

// ReleaseTimeout is how long the release of the lease may take.
func (o Options) ReleaseTimeout() time.Duration { return o.withDefaults().RenewDeadline / 2 }

// Margin is the time between the end of one leader's tenure and the earliest beginning of the next one's.
func (o Options) Margin() time.Duration {
	o = o.withDefaults()
	return o.LeaseDuration - o.RenewDeadline
}

// jitter is the share of RetryPeriod that a candidate adds at random.
const jitter = 0.2

func (o Options) withDefaults() Options {
	if o.LeaseDuration == 0 {
		o.LeaseDuration = 15 * time.Second
	}
	if o.RenewDeadline == 0 {
		o.RenewDeadline = 10 * time.Second
	}
	if o.RetryPeriod == 0 {
		o.RetryPeriod = 2 * time.Second
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.RetryPeriod < 0:
		return fmt.Errorf("retry period %v is negative", o.RetryPeriod)
	case o.LeaseDuration%time.Second != 0:
		return fmt.Errorf("lease duration %v is not a whole number of seconds", o.LeaseDuration)
	case o.LeaseDuration <= o.RenewDeadline:
		return fmt.Errorf("lease duration %v must be longer than the renew deadline %v", o.LeaseDuration, o.RenewDeadline)
	case float64(o.RenewDeadline) <= float64(o.RetryPeriod)*(1+jitter):
		return fmt.Errorf("renew deadline %v must be longer than 1.2 times the retry period %v", o.RenewDeadline, o.RetryPeriod)
	}
	return nil
}

// ErrLost is found in the error of a tenure that ended because the lease could no longer be vouched for.
var ErrLost = errors.New("leader lease lost")

// ErrWorkRemains, returned by the lead function, says that guarded work did not return. The lease is then not released: it runs
// out by itself, and the next leader waits for that.
var ErrWorkRemains = errors.New("guarded work still runs")

// Elector runs for the leadership of one lock.
//
// Concurrency: Status and Check may be called from any goroutine at any time; one Run at a time.
type Elector struct {
	lock    resourcelock.Interface
	options Options

	mu sync.Mutex
	// running is set while Run is.
	running bool
	// observed is what the lock was last seen to say.
	observed observation
	// rival is the last state of the lock in which somebody else may lead; the zero value when its holder gave it back, and when we
	// have led since.
	rival observation
	// renewedAt is when the last successful acquisition or renewal was sent; the zero time when not leading.
	renewedAt time.Time
	// unanswered holds when the last writes since then were sent that may or may not have arrived.
	// Invariant: len(unanswered) <= maxUnanswered.
	unanswered []time.Time
	// slow counts renewals that had to look at the lock first, because somebody else had written it.
	slow uint64
	// lastErr is why the lock could not be read or written the last time it was tried.
	lastErr error
}

const maxUnanswered = 8

// New returns an elector for the lock, whose identity must be unique among the candidates. It starts nothing.
//
// Errors: times that do not fit together, or no identity.
func New(lock resourcelock.Interface, o Options) (*Elector, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	if lock.Identity() == "" {
		return nil, errors.New("leader election: the identity is empty")
	}
	return &Elector{lock: lock, options: o}, nil
}

// Status says how an [Elector] stands.
type Status struct {
	// Leading is true from the acquisition to the end of the tenure.
	Leading bool
	// Holder is the identity in the lease when it was last seen; empty when it is free or was not seen yet.
	Holder string
	// Seen is false until the lock was read for the first time.
	Seen bool
	// Patience is how long the holder, if that is somebody else, may go on without another sign of life.
	Patience time.Duration
	// Err is why the lock could not be read or written the last time it was tried; nil when it could.
	Err error
	// SlowRenewals counts, over all tenures, those for which the lock had to be looked at first.
	SlowRenewals uint64
}

// Status tells who leads, as far as is known here.
func (e *Elector) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Status{
		Leading: e.checkLocked() == nil,
		Holder:  e.observed.record.HolderIdentity,
		Seen:    !e.observed.at.IsZero(),
		Err:     e.lastErr,

		SlowRenewals: e.slow,

		Patience: max(0, time.Until(e.rival.expiry(e.options.LeaseDuration))),
	}
}

// Check is nil while no other process can hold the lease. It looks at the clock at the moment of the call, so it is right
// also in a process that was stopped for a while and whose timers are late.
func (e *Elector) Check() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.checkLocked()
}

func (e *Elector) checkLocked() error {
	switch {
	case e.renewedAt.IsZero():
		return fmt.Errorf("%w: not the leader of %s", ErrLost, e.lock.Describe())
	case time.Since(e.renewedAt) >= e.options.RenewDeadline:
		return fmt.Errorf("%w: %s was last renewed %v ago", ErrLost, e.lock.Describe(), time.Since(e.renewedAt).Round(time.Millisecond))
	}
	return nil
}

// Run waits to be elected, then calls lead, renews the lease until lead returns, and releases it after that, unless lead returned
// [ErrWorkRemains]. It may be called again afterwards, to be a candidate once more.
//
// tenure, which lead is given, ends when the lease could soon be lost, with a cause that is [ErrLost]: lead must then return
// without writing anything more. It does not end with ctx: lead looks out for that itself and may take its time, the lease
// is renewed as long as it runs.
//
// Errors: nil when ctx ended before an election; else what lead returned, joined with [ErrLost] when the tenure ended early and
// with the reason when the lease could not be released.
func (e *Elector) Run(ctx context.Context, lead func(tenure context.Context) error) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	if ctx.Err() != nil {
		return nil
	}
	klog.FromContext(ctx).Info("Campaigning for the leader lease", "lease", e.lock.Describe(), "identity", e.lock.Identity())
	if !e.campaign(ctx) {
		return e.giveUp(ctx)
	}
	klog.FromContext(ctx).Info("Became leader", "lease", e.lock.Describe(), "identity", e.lock.Identity())
	e.lock.RecordEvent("became leader")
	return e.serve(ctx, lead)
}

func (e *Elector) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return errors.New("leader election: Run called while it is running")
	}
	e.running = true
	return nil
}

func (e *Elector) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = false
	e.renewedAt = time.Time{}
}

// campaign looks at the lock until it is acquired (true) or ctx ends (false).
func (e *Elector) campaign(ctx context.Context) bool {
	for {
		if e.attempt(ctx, e.acquire) == nil {
			return true
		}
		timer := time.NewTimer(e.nextLook())
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return false
		}
	}
}

// nextLook is how long a candidate waits: about a retry period, but not past the moment when the lease runs out.
func (e *Elector) nextLook() time.Duration {
	wait := time.Duration(float64(e.options.RetryPeriod) * (1 + jitter*e.options.Random()))
	e.mu.Lock()
	defer e.mu.Unlock()
	if left := time.Until(e.rival.expiry(e.options.LeaseDuration)); left > 0 {
		wait = min(wait, left)
	}
	return wait
}

// isHeld says whether somebody else may still lead: his lease has been unchanged for less than its duration, and ours.
func (e *Elector) isHeld() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Now().Before(e.rival.expiry(e.options.LeaseDuration))
}

// errHeld says that another candidate holds the lease.
var errHeld = errors.New("the lease is held")

// attempt runs one exchange with the lock, keeps the books of errors, and logs the first of a row of equal ones.
func (e *Elector) attempt(parent context.Context, exchange func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(parent, e.options.RenewDeadline/2) // so that a request that hangs is not the last one
	defer cancel()
	err := exchange(ctx)
	if errors.Is(err, errHeld) || errors.Is(err, ErrLost) {
		e.noteError(nil)
		return err
	}
	if isNews := e.noteError(err); isNews && !errors.Is(parent.Err(), context.Canceled) { // else it is our own stop
		klog.FromContext(ctx).Error(err, "Leader lease is out of reach", "lease", e.lock.Describe())
	}
	return err
}

func (e *Elector) noteError(err error) (isNews bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	isNews = err != nil && (e.lastErr == nil || e.lastErr.Error() != err.Error())
	e.lastErr = err
	return isNews
}

// acquire takes the lease if nobody can lead: it is free, expired, or already carries our identity (an earlier answer was lost).
func (e *Elector) acquire(ctx context.Context) error {
	sent := time.Now()
	record, _, err := e.lock.Get(ctx)
	isMissing := apierrors.IsNotFound(err)
	switch {
	case isMissing:
		record = &resourcelock.LeaderElectionRecord{}
	case err != nil:
		return fmt.Errorf("get lease %s: %w", e.lock.Describe(), err)
	}
	e.observe(ctx, *record)
	switch {
	case e.isHeld():
		return errHeld
	case isMissing:
		return e.create(ctx, sent)
	}
	next := *record
	if record.HolderIdentity != e.lock.Identity() {
		next.LeaderTransitions = min(next.LeaderTransitions+1, math.MaxInt32) // more is refused by the server
		next.AcquireTime = metav1.Now()
	}
	return e.update(ctx, next)
}

func (e *Elector) create(ctx context.Context, sent time.Time) error {
	record := resourcelock.LeaderElectionRecord{AcquireTime: metav1.NewTime(sent)}
	e.sign(&record, sent)
	if err := e.lock.Create(ctx, record); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			e.noteUnanswered(sent)
		}
		return fmt.Errorf("create lease %s: %w", e.lock.Describe(), err)
	}
	e.won(record, sent)
	return nil
}

// update writes the record under our name. The lock refuses it when somebody else wrote since the last Get.
func (e *Elector) update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	e.sign(&record, sent)
	if err := e.lock.Update(ctx, record); err != nil {
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			e.noteUnanswered(sent)
		}
		return fmt.Errorf("update lease %s: %w", e.lock.Describe(), err)
	}
	e.won(record, sent)
	return nil
}

func (e *Elector) noteUnanswered(sent time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unanswered = append(e.unanswered[max(0, len(e.unanswered)-maxUnanswered+1):], sent)
}

func (e *Elector) sign(record *resourcelock.LeaderElectionRecord, now time.Time) {
	record.HolderIdentity = e.lock.Identity()
	record.LeaseDurationSeconds = int(e.options.LeaseDuration / time.Second)
	record.RenewTime = metav1.NewTime(now)
}

// won notes that a write of ours, sent then, was accepted. An answer that comes when the tenure is over does not bring it back: a
// candidate may have looked before the write arrived.
func (e *Elector) won(record resourcelock.LeaderElectionRecord, sent time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed, e.rival = observation{record: record, at: sent}, observation{}
	e.unanswered = nil
	if e.renewedAt.IsZero() || time.Since(e.renewedAt) < e.options.RenewDeadline {
		e.renewedAt = sent
	}
}

// observe notes what the lock says, or that it is missing, and since when. Whatever was done to it, others than its holder included,
// somebody may lead who has not noticed yet, unless it is seen for the first time and free, was given back, or was written by us.
func (e *Elector) observe(ctx context.Context, record resourcelock.LeaderElectionRecord) {
	holder, own := record.HolderIdentity, e.lock.Identity()
	e.mu.Lock()
	before := e.observed
	if before.at.IsZero() || !sameRecord(before.record, record) {
		e.observed = observation{record: record, at: time.Now()}
		isFirst := before.at.IsZero() && (holder == "" || holder == own)
		switch {
		case isReleased(record):
			e.rival = observation{}
		case !isFirst && (holder != own || e.wroteLocked(record) < 0):
			e.rival = e.observed
		}
	}
	e.mu.Unlock()
	if holder == "" || holder == before.record.HolderIdentity || holder == own {
		return
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "lease", e.lock.Describe(), "holder", holder, "identity", own)
	if before.at.IsZero() {
		logger.Info("Another process leads")
	} else {
		logger.Info("Leader changed")
	}
}

// wroteLocked tells which of the writes without an answer the record is; -1 if none.
func (e *Elector) wroteLocked(record resourcelock.LeaderElectionRecord) int {
	return slices.IndexFunc(e.unanswered, func(sent time.Time) bool { return sameTime(record.RenewTime.Time, sent) })
}

// arrived notes that the lock carries our name. Only we write that, so when it also carries the time of a write whose answer
// never came, then that write was accepted.
func (e *Elector) arrived(record resourcelock.LeaderElectionRecord) {
	e.mu.Lock()
	i := e.wroteLocked(record)
	var sent time.Time
	if i >= 0 {
		sent = e.unanswered[i]
	}
	e.mu.Unlock()
	if i >= 0 {
		e.won(record, sent)
	}
}
