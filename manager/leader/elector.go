package leader

import (
	"cmp"
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
	"k8s.io/klog/v2"
)

// Options holds the durations of an [Elector]. The zero value means those of kube-controller-manager.
//
// LeaseDuration > RenewDeadline > RetryPeriod × 1.2 must hold.
type Options struct {
	// LeaseDuration is how long candidates wait after they last saw the lease change. It must be a whole number of
	// seconds, because the lease holds seconds. Zero means 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader continues without a successful renewal. Zero means 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two renewals. It is also the time between two reads by a candidate, which adds up
	// to a fifth of it at random. Zero means 2 s.
	RetryPeriod time.Duration
	// Random returns numbers in [0,1). Nil means math/rand/v2; the simulator passes its own.
	Random func() float64
}

// Duration returns LeaseDuration, or its default.
func (o Options) Duration() time.Duration { return o.withDefaults().LeaseDuration }

// ReleaseTimeout returns how long releasing the lease may take.
func (o Options) ReleaseTimeout() time.Duration { return o.withDefaults().RenewDeadline / 2 }

// Margin returns the time between the end of one leader's tenure and the earliest start of the next.
func (o Options) Margin() time.Duration {
	o = o.withDefaults()
	return o.LeaseDuration - o.RenewDeadline
}

// jitter is the maximum fraction of RetryPeriod that a candidate adds at random.
const jitter = 0.2

func (o Options) withDefaults() Options {
	o.LeaseDuration = cmp.Or(o.LeaseDuration, 15*time.Second)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, 10*time.Second)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, 2*time.Second)
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
		return fmt.Errorf("lease duration %v must be longer than the renew deadline %v", o.LeaseDuration,
			o.RenewDeadline)
	case float64(o.RenewDeadline) <= float64(o.RetryPeriod)*(1+jitter):
		return fmt.Errorf("renew deadline %v must be longer than 1.2 times the retry period %v", o.RenewDeadline,
			o.RetryPeriod)
	}
	return nil
}

// ErrLost is wrapped by the error of a tenure that ended because another process could soon have acquired the lease.
var ErrLost = errors.New("leader lease lost")

// ErrWorkRemains is returned by the lead function if guarded work did not return. The lease is then not released: it
// expires, and the next leader waits for that.
var ErrWorkRemains = errors.New("guarded work is still running")

// Elector is a candidate for the leadership of one lock.
//
// Concurrency: Status and Check may be called from any goroutine at any time; one Run at a time.
type Elector struct {
	lock    Lock
	options Options

	mu sync.Mutex
	// running is true while Run runs.
	running bool
	// observed is the last seen state of the lock.
	observed observation
	// rival is the last seen state of the lock in which another process may lead. It is the zero value if the holder
	// released the lock, or if this process has led since.
	rival observation
	// renewedAt is when the last successful acquisition or renewal was sent; zero when not leading.
	renewedAt time.Time
	// unanswered has the send times of the writes since renewedAt whose outcome is unknown. Invariant: len(unanswered)
	// <= maxUnanswered.
	unanswered []time.Time
	// slow counts renewals that had to read the lock first, because a write without a read was rejected.
	slow uint64
	// lastErr is the error of the last attempt to read or write the lock; nil if it succeeded.
	lastErr error
}

const maxUnanswered = 8

// New returns an elector for the lock. The lock's identity must be unique among the candidates. New starts no
// goroutine.
//
// Errors: durations that contradict each other; an empty identity.
func New(lock Lock, o Options) (*Elector, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	if lock.Identity() == "" {
		return nil, errors.New("leader election: the identity is empty")
	}
	return &Elector{lock: lock, options: o}, nil
}

// Status is the state of an [Elector].
type Status struct {
	// Leading is true from the acquisition to the end of the tenure.
	Leading bool
	// Holder is the last seen identity in the lease; empty if the lease is free or was not read yet.
	Holder string
	// Seen is true once the lock has been read.
	Seen bool
	// Patience is how long another process, if it is the holder, may still lead without a further renewal.
	Patience time.Duration
	// Err is the error of the last attempt to read or write the lock; nil if it succeeded.
	Err error
	// SlowRenewals counts, over all tenures, the renewals that had to read the lock first.
	SlowRenewals uint64
}

// Status returns the state of the election, as far as this process knows it.
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

// Check returns nil while no other process can hold the lease. Each call compares the clock with the deadline, so it is
// correct even in a process that was stopped for a while, where timers fire late.
func (e *Elector) Check() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.checkLocked()
}

func (e *Elector) checkLocked() error {
	switch {
	case e.renewedAt.IsZero():
		return fmt.Errorf("%w: not the leader of %s", ErrLost, e.lock.Describe())
	case since(e.renewedAt) >= e.options.RenewDeadline:
		return fmt.Errorf("%w: %s was last renewed %v ago", ErrLost, e.lock.Describe(),
			since(e.renewedAt).Round(time.Millisecond))
	}
	return nil
}

// since returns the time since t by the monotonic clock or by the wall clock, whichever is longer. The monotonic clock
// stops while the machine is suspended. The wall clock may be set forward, but then a tenure ends too early, which does
// no harm.
func since(t time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(t), now.Round(0).Sub(t.Round(0)))
}

// Run waits until this process is elected, then calls lead, and renews the lease until lead returns. It then releases
// the lease, unless lead returned [ErrWorkRemains]. Run may be called again to become a candidate once more.
//
// lead receives the context tenure. It ends when the lease could soon be lost, with a cause that wraps [ErrLost]; lead
// must then return without a further write. tenure does not end with ctx. lead must watch ctx itself, and may take its
// time, because the lease is renewed until lead returns.
//
// Errors: nil if ctx ended before an election; otherwise the error of lead, joined with [ErrLost] if the tenure ended
// early and with the reason if the lease could not be released.
func (e *Elector) Run(ctx context.Context, lead func(tenure context.Context) error) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	if ctx.Err() != nil {
		return nil
	}
	klog.FromContext(ctx).Info("Campaigning for the leader lease", "lease", e.lock.Describe(),
		"identity", e.lock.Identity())
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

// campaign tries to acquire the lock until it succeeds or ctx ends. It reports whether it has succeeded.
func (e *Elector) campaign(ctx context.Context) bool {
	for {
		if e.attempt(ctx, e.acquire) == nil {
			return true
		}
		timer := time.NewTimer(e.nextAttemptDelay())
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

// nextAttemptDelay returns how long a candidate waits before its next attempt: about a retry period, but no longer than
// until the lease expires.
func (e *Elector) nextAttemptDelay() time.Duration {
	wait := time.Duration(float64(e.options.RetryPeriod) * (1 + jitter*e.options.Random()))
	e.mu.Lock()
	defer e.mu.Unlock()
	if left := time.Until(e.rival.expiry(e.options.LeaseDuration)); left > 0 {
		wait = min(wait, left)
	}
	return wait
}

// isHeld reports whether another process may still lead: its lease has been unchanged for less than the lease's
// duration or ours, whichever is longer.
func (e *Elector) isHeld() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Now().Before(e.rival.expiry(e.options.LeaseDuration))
}

// errHeld is returned when another candidate holds the lease.
var errHeld = errors.New("the lease is held")

// attempt runs one exchange with the lock, records its error, and logs the first of a series of equal errors.
func (e *Elector) attempt(parent context.Context, exchange func(context.Context) error) error {
	// The timeout leaves time for another request after one that hangs.
	ctx, cancel := context.WithTimeout(parent, e.options.RenewDeadline/2)
	defer cancel()
	err := exchange(ctx)
	if errors.Is(err, errHeld) || errors.Is(err, ErrLost) {
		e.noteError(nil)
		return err
	}
	// An error of a cancelled parent only means that this process is stopping.
	if isNew := e.noteError(err); isNew && !errors.Is(parent.Err(), context.Canceled) {
		klog.FromContext(ctx).Error(err, "Failed to get or renew the leader lease", "lease", e.lock.Describe())
	}
	return err
}

func (e *Elector) noteError(err error) (isNew bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	isNew = err != nil && (e.lastErr == nil || e.lastErr.Error() != err.Error())
	e.lastErr = err
	return isNew
}

// acquire takes the lease if no other process can lead: the lease is free, has expired, or already carries our identity
// because the response to an earlier write was lost.
func (e *Elector) acquire(ctx context.Context) error {
	sent := time.Now()
	record, err := e.read(ctx)
	isMissing := apierrors.IsNotFound(err)
	if err != nil && !isMissing {
		return fmt.Errorf("get lease %s: %w", e.lock.Describe(), err)
	}
	e.observe(ctx, record)
	switch {
	case e.isHeld():
		return errHeld
	case isMissing:
		return e.create(ctx, sent)
	}
	next := record
	if record.HolderIdentity != e.lock.Identity() {
		next.LeaderTransitions = min(next.LeaderTransitions+1, math.MaxInt32) // the server rejects larger values
		next.AcquireTime = metav1.Now()
	}
	return e.update(ctx, next)
}

// read reads the record.
func (e *Elector) read(ctx context.Context) (leaseRecord, error) {
	spec, err := e.lock.Get(ctx)
	return recordOf(spec), err
}

func (e *Elector) create(ctx context.Context, sent time.Time) error {
	record := leaseRecord{AcquireTime: metav1.NewTime(sent)}
	e.sign(&record, sent)
	if err := e.lock.Create(ctx, specOf(record)); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			e.noteUnanswered(sent)
		}
		return fmt.Errorf("create lease %s: %w", e.lock.Describe(), err)
	}
	e.won(record, sent)
	return nil
}

// update writes the record under our name. The lock rejects the write if it has changed since the last Get.
func (e *Elector) update(ctx context.Context, record leaseRecord) error {
	sent := time.Now()
	e.sign(&record, sent)
	if err := e.lock.Update(ctx, specOf(record)); err != nil {
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

func (e *Elector) sign(record *leaseRecord, now time.Time) {
	record.HolderIdentity = e.lock.Identity()
	record.LeaseDurationSeconds = int(e.options.LeaseDuration / time.Second)
	record.RenewTime = metav1.NewTime(now)
}

// won records that a write of ours, sent at the given time, was accepted. A response that arrives after the end of the
// tenure does not revive it: a candidate may have read the lock before the write arrived.
func (e *Elector) won(record leaseRecord, sent time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observed, e.rival = observation{record: record, at: sent}, observation{}
	e.unanswered = nil
	if e.renewedAt.IsZero() || since(e.renewedAt) < e.options.RenewDeadline {
		e.renewedAt = sent
	}
}

// observe records the state of the lock, which may be missing, and when it was first seen. A process that has not
// noticed a change of the lock yet may still lead, so most changes are also recorded as the state of a rival. There are
// three exceptions: when first seen, the lock is free or has our identity; its holder has released it; or the change is
// our own write.
func (e *Elector) observe(ctx context.Context, record leaseRecord) {
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
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "lease", e.lock.Describe(), "holder", holder, "identity",
		own)
	if before.at.IsZero() {
		logger.Info("Another process leads")
	} else {
		logger.Info("Leader changed")
	}
}

// wroteLocked returns the index of the unanswered write that wrote the record, or -1.
func (e *Elector) wroteLocked(record leaseRecord) int {
	return slices.IndexFunc(e.unanswered, func(sent time.Time) bool { return sameTime(record.RenewTime.Time, sent) })
}

// recordAccepted is called if the lock has our identity, which only this process writes. If the lock also has the time
// of an unanswered write, that write was accepted, and recordAccepted records it as won.
func (e *Elector) recordAccepted(record leaseRecord) {
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
