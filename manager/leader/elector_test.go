package leader

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// candidate is an elector at work.
type candidate struct {
	*Elector
	lock    *fakeLock
	stop    context.CancelFunc
	elected chan context.Context // receives the tenure, once
	// finish lets lead return; closed by the test.
	finish chan struct{}
	result chan error
	start  time.Time
}

// campaign starts a candidate whose lead returns when its tenure ends or finish is closed.
func campaign(t *testing.T, lease *fakeLease, identity string) *candidate {
	t.Helper()
	lock := &fakeLock{lease: lease, identity: identity}
	e, err := New(lock, Options{Random: func() float64 { return 0.5 }})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, e, lock)
}

func start(t *testing.T, e *Elector, lock *fakeLock) *candidate {
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{})) // discards
	c := &candidate{
		Elector: e, lock: lock, stop: stop, start: time.Now(),
		elected: make(chan context.Context, 1), finish: make(chan struct{}), result: make(chan error, 1),
	}
	go func() {
		c.result <- e.Run(ctx, func(tenure context.Context) error {
			c.elected <- tenure
			select {
			case <-tenure.Done():
			case <-c.finish:
			}
			return nil
		})
	}()
	return c
}

// leave ends the candidate, leading or not, and returns Run's error.
func (c *candidate) leave() error {
	c.stop()
	close(c.finish)
	return <-c.result
}

// A candidate that is stopped before it begins leaves the lease alone, and has nothing to report.
func TestStoppedBeforeTheCampaign(t *testing.T) {
	lease := &fakeLease{}
	e, err := New(&fakeLock{lease: lease, identity: "a"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := e.Run(ctx, func(context.Context) error { return errors.New("led") }); err != nil {
		t.Error(err)
	}
	if lease.record != nil {
		t.Errorf("record %+v", lease.record)
	}
}

// A renewal is in flight for so long that the tenure ends meanwhile. Its response must not revive the tenure: a process
// that was stopped may run no timers and only call Check.
func TestALateAnswerDoesNotBringATenureBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &fakeLock{lease: &fakeLease{}, identity: "a"}
		e, err := New(lock, Options{})
		if err != nil {
			t.Fatal(err)
		}
		over, result := make(chan struct{}), make(chan error, 1)
		go func() {
			result <- e.Run(t.Context(), func(context.Context) error {
				<-over // ignores the end of its tenure
				return nil
			})
		}()
		time.Sleep(3 * time.Second) // renewed at 2 s
		lock.fail(func(context.Context, string) (bool, error) {
			time.Sleep(9 * time.Second) // sent at 4 s, answered at 13 s
			return true, nil
		})
		time.Sleep(10*time.Second + time.Millisecond)
		if e.Check() == nil {
			t.Error("it may write again 13s after the start, want the tenure to have ended at 12s for good")
		}
		close(over)
		if err := <-result; !errors.Is(err, ErrLost) {
			t.Errorf("run: %v, want ErrLost", err)
		}
	})
}

func TestAcquiresAFreeLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{}
		a := campaign(t, lease, "a")
		tenure := <-a.elected
		if took := time.Since(a.start); took != 0 {
			t.Errorf("elected after %v, want at once", took)
		}
		record := lease.get()
		if record.HolderIdentity != "a" || record.LeaseDurationSeconds != 15 || record.LeaderTransitions != 0 ||
			!record.AcquireTime.Time.Equal(a.start) {
			t.Errorf("record %+v", record)
		}
		if s := a.Status(); !s.Leading || s.Holder != "a" || s.Err != nil || a.Check() != nil {
			t.Errorf("status %+v, check %v", s, a.Check())
		}
		time.Sleep(time.Hour)
		if tenure.Err() != nil {
			t.Errorf("tenure ended: %v", context.Cause(tenure))
		}
		record = lease.get()
		if behind := time.Since(record.RenewTime.Time); behind > 2*time.Second ||
			!record.AcquireTime.Time.Equal(a.start) {
			t.Errorf("renewed %v ago, acquired at %v", behind, record.AcquireTime)
		}
		if err := a.leave(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(a.lock.events, []string{"became leader"}) {
			t.Errorf("events %q", a.lock.events)
		}
	})
}

// Source: client-go v0.37.2 tools/leaderelection tryRelease: the holder is emptied, the duration becomes one second.
func TestReleasesAfterTheWorkReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{}
		a := campaign(t, lease, "a")
		<-a.elected
		a.stop()
		time.Sleep(time.Minute) // the lease is kept while the work continues
		if record := lease.get(); record.HolderIdentity != "a" || time.Since(record.RenewTime.Time) > 2*time.Second {
			t.Errorf("after the stop, with work in flight: %+v", record)
		}
		if err := a.Check(); err != nil {
			t.Error(err)
		}
		close(a.finish)
		if err := <-a.result; err != nil {
			t.Fatal(err)
		}
		if record := lease.get(); record.HolderIdentity != "" || record.LeaseDurationSeconds != 1 {
			t.Errorf("released record %+v", record)
		}
		if a.Check() == nil || a.Status().Leading {
			t.Error("still leading after the release")
		}
		b := campaign(t, lease, "b")
		<-b.elected
		if took := time.Since(b.start); took != 0 {
			t.Errorf("the next leader waited %v for a released lease", took)
		}
		if record := lease.get(); record.LeaderTransitions != 1 {
			t.Errorf("transitions %d, want 1", record.LeaderTransitions)
		}
		if err := b.leave(); err != nil {
			t.Error(err)
		}
	})
}

func TestFollowerSaysWhoLeadsAndTakesOverInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{}
		a := campaign(t, lease, "a")
		<-a.elected
		b := campaign(t, lease, "b")
		time.Sleep(time.Minute)
		if s := b.Status(); s.Leading || s.Holder != "a" || !s.Seen || s.Err != nil {
			t.Errorf("follower's status %+v", s)
		}
		var cut sync.Once
		var cutAt time.Time
		a.lock.fail(func(context.Context, string) (bool, error) {
			cut.Do(func() { cutAt = time.Now() })
			return false, errPartition
		})
		var lostAt time.Time
		var lost error
		select {
		case <-b.elected:
			t.Fatal("the follower took over before the leader had stopped")
		case lost = <-a.result:
			lostAt = time.Now()
		}
		if !errors.Is(lost, ErrLost) || !errors.Is(lost, errPartition) {
			t.Errorf("the old leader's error: %v", lost)
		}
		<-b.elected
		// The last renewal was two seconds before the first one that failed.
		if held := lostAt.Sub(cutAt.Add(-2 * time.Second)); held != 10*time.Second {
			t.Errorf("led for %v after the last renewal, want 10s", held)
		}
		if margin := time.Since(lostAt); margin < 5*time.Second || margin > 7400*time.Millisecond {
			t.Errorf("%v between two leaders, want 5 s and at most a look more", margin)
		}
		if err := b.leave(); err != nil {
			t.Error(err)
		}
	})
}

func TestHangingRenewalDoesNotProlongTheTenure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := campaign(t, &fakeLease{}, "a")
		tenure := <-a.elected
		start := time.Now()
		a.lock.fail(func(context.Context, string) (bool, error) {
			time.Sleep(time.Hour) // not even the end of its context wakes it
			return false, errPartition
		})
		<-tenure.Done()
		if led := time.Since(start); led != 10*time.Second {
			t.Errorf("tenure ended after %v, want 10s", led)
		}
		if !errors.Is(context.Cause(tenure), ErrLost) || a.Check() == nil {
			t.Errorf("cause %v, check %v", context.Cause(tenure), a.Check())
		}
		if err := <-a.result; !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

// A process that was stopped runs its timers late, so Check compares the clock.
func TestCheckIsRightBeforeTheTimerIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(&fakeLock{lease: &fakeLease{}, identity: "a"}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Second - 1)
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Nanosecond)
		if err := e.Check(); !errors.Is(err, ErrLost) {
			t.Errorf("check after ten seconds without a timer: %v", err)
		}
	})
}

func TestShortOutagesAndLostAnswersDoNotFlap(t *testing.T) {
	faults := map[string]func(call int) (bool, error){
		"three renewals of six do not arrive": func(call int) (bool, error) {
			if call%6 < 3 {
				return false, errPartition
			}
			return true, nil
		},
		"every third answer is lost": func(call int) (bool, error) {
			if call%3 == 0 {
				return true, context.DeadlineExceeded
			}
			return true, nil
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lease := &fakeLease{}
				a := campaign(t, lease, "a")
				tenure := <-a.elected
				calls := 0
				a.lock.fail(func(context.Context, string) (bool, error) {
					calls++
					return fault(calls)
				})
				b := campaign(t, lease, "b")
				time.Sleep(10 * time.Minute)
				if tenure.Err() != nil {
					t.Errorf("tenure ended: %v", context.Cause(tenure))
				}
				if s := b.Status(); s.Leading || s.Holder != "a" {
					t.Errorf("follower's status %+v", s)
				}
				a.lock.fail(nil)
				if err := errors.Join(b.leave(), a.leave()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestStolenLeaseEndsTheTenureAtTheNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{}
		a := campaign(t, lease, "a")
		<-a.elected
		lease.set(&leaseRecord{HolderIdentity: "thief", LeaseDurationSeconds: 15})
		start := time.Now()
		err := <-a.result
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), `held by "thief"`) ||
			time.Since(start) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if got := lease.get().HolderIdentity; got != "thief" {
			t.Errorf("lease is held by %q: what is not ours was released", got)
		}
	})
}

func TestDeletedLeaseIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{}
		a := campaign(t, lease, "a")
		tenure := <-a.elected
		lease.set(nil)
		time.Sleep(3 * time.Second)
		if got := lease.get().HolderIdentity; got != "a" || tenure.Err() != nil {
			t.Errorf("held by %q, tenure %v", got, tenure.Err())
		}
		record := lease.get()
		lease.set(&record) // with a label, for example
		time.Sleep(3 * time.Second)
		if s := a.Status(); s.SlowRenewals != 1 || !s.Leading {
			t.Errorf("status %+v", s)
		}
		if err := a.leave(); err != nil {
			t.Error(err)
		}
	})
}

// Our wall clock is never compared with those of others.
func TestClockSkewIsHarmless(t *testing.T) {
	for name, skew := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stamp := metav1.NewTime(time.Now().Add(skew))
				lease := &fakeLease{}
				lease.set(
					&leaseRecord{
						HolderIdentity: "other", LeaseDurationSeconds: 15,
						RenewTime: stamp,
					},
				)
				a := campaign(t, lease, "a")
				<-a.elected
				if took := time.Since(a.start); took != 15*time.Second {
					t.Errorf("took over after %v, want 15s since it was first seen", took)
				}
				if err := a.leave(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestStopWhileCampaigning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{}
		lease.set(&leaseRecord{HolderIdentity: "other", LeaseDurationSeconds: 3600})
		a := campaign(t, lease, "a")
		time.Sleep(time.Minute)
		if err := a.leave(); err != nil {
			t.Error(err)
		}
		if got := lease.get().HolderIdentity; got != "other" {
			t.Errorf("held by %q", got)
		}
	})
}

func TestUnreachableLockIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{}
		lock := &fakeLock{lease: lease, identity: "a"}
		lock.fail(func(context.Context, string) (bool, error) { return false, errPartition })
		e, err := New(lock, Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := start(t, e, lock)
		time.Sleep(time.Minute)
		if s := a.Status(); s.Seen || !errors.Is(s.Err, errPartition) ||
			!strings.Contains(s.Err.Error(), "get lease kube-system/lock") {
			t.Errorf("status %+v", s)
		}
		if err := a.leave(); err != nil {
			t.Error(err)
		}
	})
}

func TestReleaseSurvivesAConflictAndReportsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{}
		a := campaign(t, lease, "a")
		<-a.elected
		record := lease.get()
		lease.set(&record) // somebody added a label
		if err := a.leave(); err != nil {
			t.Error(err)
		}
		if got := lease.get().HolderIdentity; got != "" {
			t.Errorf("not released: held by %q", got)
		}

		b := campaign(t, lease, "b")
		<-b.elected
		b.lock.fail(func(context.Context, string) (bool, error) { return false, errPartition })
		if err := b.leave(); !errors.Is(err, errPartition) || !strings.Contains(err.Error(), "release lease") {
			t.Errorf("error %v", err)
		}
	})
}

func TestRunAgainButNotTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{}
		a := campaign(t, lease, "a")
		<-a.elected
		if err := a.Run(t.Context(), nil); err == nil {
			t.Error("a second Run beside the first returned nil")
		}
		if err := a.leave(); err != nil {
			t.Fatal(err)
		}
		again := start(t, a.Elector, a.lock)
		<-again.elected
		if err := again.leave(); err != nil {
			t.Error(err)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{LeaseDuration: 10 * time.Second, RenewDeadline: 10 * time.Second},
		{RenewDeadline: 2 * time.Second},
		{LeaseDuration: 15500 * time.Millisecond},
		{RetryPeriod: -1},
	} {
		if _, err := New(&fakeLock{identity: "a"}, o); err == nil {
			t.Errorf("accepted %+v", o)
		}
	}
	if _, err := New(&fakeLock{}, Options{}); err == nil {
		t.Error("accepted an empty identity")
	}
}

// TestNeverTwoLeaders lets three candidates campaign through partitions, hanging requests, lost responses and restarts.
// Ten times a second it checks that at most one of them leads.
func TestNeverTwoLeaders(t *testing.T) {
	const seeds = 200
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			lease := &fakeLease{}
			var candidates []*candidate
			for i := range 3 {
				candidates = append(candidates, faultyCandidate(t, lease, fmt.Sprint("c", i), random.Uint64()))
			}
			led := map[string]bool{}
			for range 10 * 60 * 3 { // three minutes
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				var leaders []string
				for i, c := range candidates {
					if c.Check() == nil {
						leaders = append(leaders, c.lock.identity)
						led[c.lock.identity] = true
					}
					select {
					case <-c.result: // lost its lease: it runs again, as a restarted process would
						candidates[i] = start(t, c.Elector, c.lock)
					default:
					}
				}
				if len(leaders) > 1 {
					t.Fatalf("seed %d: leaders at once: %v", seed, leaders)
				}
			}
			if len(led) == 0 {
				t.Errorf("seed %d: nobody ever led", seed)
			}
			for _, c := range candidates {
				c.lock.fail(nil)
				_ = c.leave() // may have just lost it
			}
		})
	}
}

// faultyCandidate starts a candidate whose network changes at least every 20 s: it works slowly, is cut, hangs, or
// loses responses.
func faultyCandidate(t *testing.T, lease *fakeLease, identity string, seed uint64) *candidate {
	random := rand.New(rand.NewPCG(seed, 2))
	lock := &fakeLock{lease: lease, identity: identity}
	var until time.Time
	mode := 0
	lock.fail(func(ctx context.Context, _ string) (bool, error) {
		if time.Now().After(until) {
			mode = random.IntN(5)
			until = time.Now().Add(time.Duration(random.Int64N(int64(20 * time.Second))))
		}
		switch mode {
		case 0:
			return false, errPartition
		case 1:
			<-ctx.Done()
			return false, ctx.Err()
		case 2:
			return true, errPartition
		}
		time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) // slow
		return true, ctx.Err()
	})
	electorRandom := rand.New(rand.NewPCG(seed, 3))
	e, err := New(lock, Options{Random: electorRandom.Float64})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, e, lock)
}

// TestSuspendedMachine: the monotonic clock stops while a machine is suspended. When the machine resumes, the tenure is
// over by the wall clock, and the response to a renewal does not revive it.
func TestSuspendedMachine(t *testing.T) {
	e, err := New(&fakeLock{identity: "a"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.renewedAt = time.Now()
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	e.renewedAt = onTheWall(t, e.renewedAt, -time.Minute)
	if err := e.Check(); !errors.Is(err, ErrLost) {
		t.Errorf("after a minute of sleep: %v, want %v", err, ErrLost)
	}
	e.won(leaseRecord{}, time.Now())
	if err := e.Check(); !errors.Is(err, ErrLost) {
		t.Errorf("after a renewal that came too late: %v, want %v", err, ErrLost)
	}
	e.renewedAt = onTheWall(t, time.Now(), time.Minute) // as if the wall clock had been set back since then
	if err := e.Check(); err != nil {
		t.Errorf("with a wall clock that was set back: %v", err)
	}
}

// onTheWall returns a time with the same reading of the monotonic clock as at, and a wall clock that differs by d.
func onTheWall(t *testing.T, at time.Time, d time.Duration) time.Time {
	t.Helper()
	moved := at
	(*struct{ wall uint64 })(unsafe.Pointer(&moved)).wall += uint64(d/time.Second) << 30 // see package time
	if moved.Sub(at) != 0 || moved.Round(0).Sub(at.Round(0)) != d {
		t.Fatalf("package time has changed: %v and %v", at, moved)
	}
	return moved
}
