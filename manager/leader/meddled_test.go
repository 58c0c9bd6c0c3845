package leader

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// edits are changes that a person may make to a lease that a holds and b waits for. None of them looks like a release
// by a.
var edits = []struct {
	name  string
	loses bool // a loses the lease when it reads the change
	edit  func(*leaseRecord) *leaseRecord
}{
	{"deleted", false, func(*leaseRecord) *leaseRecord { return nil }},
	{"without its holder", true, func(r *leaseRecord) *leaseRecord {
		r.HolderIdentity = ""
		return r
	}},
	{"given to the follower", true, func(r *leaseRecord) *leaseRecord {
		r.HolderIdentity = "b"
		return r
	}},
	{
		"given to nobody that there is", true,
		func(r *leaseRecord) *leaseRecord {
			r.HolderIdentity = "nobody\n[-]"
			return r
		},
	},
	{"for two seconds", false, func(r *leaseRecord) *leaseRecord {
		r.LeaseDurationSeconds = 2
		return r
	}},
	{"for no time", false, func(r *leaseRecord) *leaseRecord {
		r.LeaseDurationSeconds = 0
		return r
	}},
	{"of another age", false, func(r *leaseRecord) *leaseRecord {
		r.RenewTime.Time = r.RenewTime.AddDate(-1000, 0, 0)
		r.AcquireTime.Time = r.AcquireTime.AddDate(1000, 0, 0)
		return r
	}},
	{
		"with as many transitions as can be", false,
		func(r *leaseRecord) *leaseRecord {
			r.LeaderTransitions = math.MaxInt32
			return r
		},
	},
}

// Whatever a person does to the lease, a follower that knows the holder gives it time to notice.
func TestEditedLeaseHasOneLeader(t *testing.T) {
	for _, e := range edits {
		t.Run(e.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { editLease(t, e.edit, e.loses, false) })
		})
		t.Run(e.name+" while the leader cannot look", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { editLease(t, e.edit, true, true) })
		})
	}
}

func editLease(t *testing.T, edit func(*leaseRecord) *leaseRecord,
	loses, cutOff bool,
) {
	lease := &fakeLease{}
	a := campaign(t, lease, "a")
	<-a.elected
	b := campaign(t, lease, "b")
	time.Sleep(time.Minute)
	if cutOff {
		a.lock.fail(func(context.Context, string) (bool, error) { return false, errPartition })
	}
	lease.edit(edit)
	edited := time.Now()
	for b.Check() != nil && time.Since(edited) < 20*time.Second {
		time.Sleep(50 * time.Millisecond)
		if a.Check() == nil && b.Check() == nil {
			t.Fatal("two lead")
		}
	}
	if lost, took := a.Check() != nil, time.Since(edited); lost != loses || lost && took > 17400*time.Millisecond ||
		!lost && b.Check() == nil {
		t.Errorf("a: %v; b: %v, after %v", a.Check(), b.Check(), took)
	}
	a.lock.fail(nil)
	if err := errors.Join(a.leave(), b.leave()); err != nil && !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}

// Status reports a lease that never expires.
func TestStatusOfALeaseThatNeverExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lease := &fakeLease{}
		lease.set(&leaseRecord{HolderIdentity: "gone", LeaseDurationSeconds: math.MaxInt32})
		a := campaign(t, lease, "a")
		time.Sleep(time.Hour)
		if s := a.Status(); s.Leading || s.Holder != "gone" || s.Patience != math.MaxInt32*time.Second-time.Hour {
			t.Errorf("status %+v", s)
		}
		if err := a.leave(); err != nil {
			t.Error(err)
		}
	})
}

// A person deletes and edits the lease of three candidates at random moments. After a deletion, the person waits until
// all candidates have seen the new lease, because they could not notice a second deletion before.
func TestNeverTwoLeadersOfAnEditedLease(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			lease := &fakeLease{}
			candidates := []*candidate{campaign(t, lease, "a"), campaign(t, lease, "b"), campaign(t, lease, "c")}
			time.Sleep(5 * time.Second) // until all have seen the lease; see "Exceptions" in doc.go
			led := 0                    // the number of ticks with a leader
			for range 10 * 60 * 3 {
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				leaders := 0
				for i, c := range candidates {
					if c.Check() == nil {
						leaders++
					}
					select {
					case <-c.result:
						candidates[i] = start(t, c.Elector, c.lock)
					default:
					}
				}
				if leaders > 1 {
					t.Fatalf("seed %d: %d lead", seed, leaders)
				}
				if led++; leaders == 0 {
					led = 0
				}
				if led > 0 && led < 30 || random.IntN(100) > 0 {
					continue
				}
				lease.edit(edits[random.IntN(len(edits))].edit)
			}
			for _, c := range candidates {
				_ = c.leave() // may have just lost it
			}
		})
	}
}

// A process that is stopped while its request for the lease is in flight does not remain the holder of the lease.
func TestStopDuringAnUnansweredAcquisition(t *testing.T) {
	for _, verb := range []string{"create", "update"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lease := &fakeLease{}
				if verb == "update" {
					lease.set(&leaseRecord{LeaseDurationSeconds: 1})
				}
				lock := &fakeLock{lease: lease, identity: "a"}
				lock.fail(func(ctx context.Context, called string) (bool, error) {
					if called == verb && lease.holder() == "" {
						<-ctx.Done() // the write is applied, but its response is lost
						return true, ctx.Err()
					}
					return true, ctx.Err()
				})
				e, err := New(lock, Options{})
				if err != nil {
					t.Fatal(err)
				}
				a := start(t, e, lock)
				time.Sleep(time.Second)
				a.stop()
				if err := <-a.result; err != nil || lease.holder() != "" {
					t.Errorf("%v; the lease is held by %q", err, lease.holder())
				}
				if n := len(lease.history); n != 2 {
					t.Errorf("%d writes, want one that takes it and one that gives it back", n)
				}
			})
		})
	}
}
