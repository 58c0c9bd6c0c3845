package shard_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/multicluster/shard"
)

// holders returns the holder of each cluster's lease.
func (w *world) holders() map[string]string {
	all := map[string]string{}
	for name := range w.clusters {
		all[name] = w.holder(name)
	}
	return all
}

// moved returns the clusters that have another holder.
func moved(before, after map[string]string) (names []string) {
	for name, holder := range after {
		if before[name] != holder {
			names = append(names, name)
		}
	}
	return names
}

// Replicas that start at about the same time share from the beginning: nothing moves. A new replica gets an equal share
// from each of the others, and nothing else moves. When it leaves, its clusters move back to where they were.
func TestOnlyOneShareMoves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, 24)
		begin := time.Now()
		a := w.start("a", 1, shard.Options{})
		time.Sleep(time.Second)
		b := w.start("b", 2, shard.Options{})
		time.Sleep(10 * time.Second)
		two := w.holders()
		if n := a.owner.Stats().Taken + b.owner.Stats().Taken; n != 24 {
			t.Errorf("24 clusters were taken %d times: %v", n, w.shares())
		}
		c := w.start("c", 3, shard.Options{})
		time.Sleep(10 * time.Second)
		three := w.holders()
		if n := a.owner.Stats().Taken + b.owner.Stats().Taken; n != 24 {
			t.Errorf("something moved between those that were there: they have taken %d", n)
		}
		for _, name := range moved(two, three) {
			if three[name] != "c" {
				t.Errorf("%s moved from %s to %s when c came", name, two[name], three[name])
			}
		}
		shares := w.shares()
		t.Logf("shares of 24: %v, moved when the third came: %d", shares, len(moved(two, three)))
		if shares["a"] < 4 || shares["b"] < 4 || shares["c"] < 4 || shares[""] > 0 {
			t.Errorf("shares %v", shares)
		}
		c.end()
		time.Sleep(2 * time.Second)
		if after := w.holders(); !maps.Equal(after, two) {
			t.Errorf("after c has left, %v are elsewhere than before it came", moved(two, after))
		}
		a.end()
		b.end()
		v := w.judge(begin)
		t.Logf("%d writes, the longest gap %v", v.writes, v.gap)
		if v.gap > 5*time.Second {
			t.Errorf("a gap of %v: %s", v.gap, v.at)
		}
	})
}

// When a replica is killed, cut off or stopped, others take over its clusters within the stated bound, and it writes no
// more.
func TestAReplicaThatFails(t *testing.T) {
	for name, fail := range map[string]func(r *replica) (end func()){
		"killed":      func(r *replica) func() { r.kill(); return func() {} },
		"partitioned": func(r *replica) func() { return r.partition() },
		"stopped":     func(r *replica) func() { return r.pause() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, 6)
				begin := time.Now()
				all := []*replica{
					w.start("a", 1, shard.Options{}), w.start("b", 2, shard.Options{}),
					w.start("c", 3, shard.Options{}),
				}
				time.Sleep(20 * time.Second)
				before := w.holders()
				end := fail(all[0])
				time.Sleep(20 * time.Second)
				for cluster, holder := range w.holders() {
					if holder == "a" || holder == "" {
						t.Errorf("%s is held by %q 20s after", cluster, holder)
					}
					if before[cluster] != "a" && before[cluster] != holder {
						t.Errorf("%s moved from %s to %s", cluster, before[cluster], holder)
					}
				}
				end()
				time.Sleep(20 * time.Second)
				if name != "killed" && !maps.Equal(before, w.holders()) {
					t.Errorf("not where it was: %v", moved(before, w.holders()))
				}
				for _, r := range all {
					if name != "killed" || r.name != "a" {
						r.end()
					}
				}
				v := w.judge(begin)
				t.Logf("%d writes, %d refused, the longest gap %v at %s", v.writes, all[0].refused, v.gap, v.at)
				if v.gap > bound {
					t.Errorf("a gap of %v, want at most %v: %s", v.gap, bound, v.at)
				}
			})
		})
	}
}

// bound is how long a cluster is not served when its replica fails, with the default times: a lease duration after the
// last renewal that another replica saw, and the time of a few requests.
const bound = 17 * time.Second

// Work that does not end keeps its cluster from the other replicas for a lease duration. It delays no other cluster.
func TestStuckWorkLetsTheLeaseExpire(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, 6)
		a := w.start("a", 1, shard.Options{})
		time.Sleep(5 * time.Second)
		for name := range w.clusters {
			a.stuck[name] = true
		}
		b := w.start("b", 2, shard.Options{})
		time.Sleep(8 * time.Second)
		moving := 0
		for name := range w.clusters {
			if reason := b.reasonOf(name); strings.HasPrefix(reason, "held by a, whose renewal is overdue") {
				moving++
			} else if reason == "served here" {
				t.Errorf("%s is served by b while work of a goes on", name)
			}
		}
		if moving == 0 {
			t.Error("no cluster should move")
		}
		time.Sleep(15 * time.Second)
		if n := w.shares()["b"]; n != moving {
			t.Errorf("b holds %d, want %d: %v", n, moving, b.reasons)
		}
		if s := a.owner.Stats(); s.Stuck != uint64(moving) || !s.Member {
			t.Errorf("stats %+v", s)
		}
		clear(a.stuck)
		a.end()
		b.end()
	})
}

// At a clean stop, a replica first announces that it leaves, then releases each lease when its cluster has drained, and
// its membership last. Each cluster goes unserved only for the time of a few requests.
func TestACleanStop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, 6)
		begin := time.Now()
		a, b := w.start("a", 1, shard.Options{}), w.start("b", 2, shard.Options{})
		time.Sleep(20 * time.Second)
		stopped := time.Now()
		a.end()
		took := time.Since(stopped)
		time.Sleep(time.Second)
		if s := w.shares(); s["b"] != 6 {
			t.Errorf("a second after: %v", s)
		}
		var order []string
		for _, e := range w.local.Audit().Writes() {
			if e.Time.After(stopped) && strings.HasPrefix(e.UserAgent, "a/") {
				order = append(order, e.Verb+" "+strings.Split(e.Name, "-")[1])
			}
		}
		t.Logf("stopped in %v: %v", took, order)
		n := len(order)
		announced, released := slices.Index(order, "patch replica"), n-2
		if announced < 0 || order[released] != "update replica" || order[n-1] != "delete replica" ||
			slices.Contains(order[released:], "update cluster") {
			t.Errorf("writes of the one that stopped: %v", order)
		}
		b.end()
		if v := w.judge(begin); v.gap > 4*time.Second {
			t.Errorf("gap %v at %s", v.gap, v.at)
		}
	})
}

// When a lease is deleted, its holder loses the tenure at once, and no other replica takes the lease before the holder
// has had time to stop.
func TestALeaseIsDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, 3)
		begin := time.Now()
		a, b := w.start("a", 1, shard.Options{}), w.start("b", 2, shard.Options{})
		time.Sleep(10 * time.Second)
		leases := w.admin.CoordinationV1().Leases("kube-system")
		err := leases.DeleteCollection(t.Context(), metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: shard.KindLabel + "=cluster"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(14 * time.Second)
		if s := w.shares(); s[""] != 3 {
			t.Errorf("14s after: %v", s)
		}
		time.Sleep(3 * time.Second)
		if s := w.shares(); s[""] != 0 {
			t.Errorf("17s after: %v, %v", s, a.reasons)
		}
		if got := a.owner.Stats().Lost + b.owner.Stats().Lost; got != 3 {
			t.Errorf("%d tenures lost, want 3", got)
		}
		a.end()
		b.end()
		_ = begin // a write may have been under way when they were deleted
	})
}

// If a replica does not know a cluster, the next in line serves it after a while. When the first in line learns of the
// cluster, it requests the lease.
func TestTheNextInLine(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, 8)
		a := w.startKnowing("a", 1, shard.Options{}, nil)
		b := w.start("b", 2, shard.Options{})
		time.Sleep(12 * time.Second)
		early := w.shares()
		if early["b"] == 0 || early["b"] == 8 {
			t.Fatalf("b's share: %v", early)
		}
		for name, holder := range w.holders() {
			if reason := b.reasonOf(name); holder == "" && reason != "a should serve it" {
				t.Errorf("%s: %q", name, reason)
			}
		}
		time.Sleep(8 * time.Second)
		if s := w.shares(); s["b"] != 8 {
			t.Errorf("after the patience: %v", s)
		}
		a.end()
		a = w.start("a", 3, shard.Options{})
		time.Sleep(10 * time.Second)
		if s := w.shares(); s["b"] != early["b"] {
			t.Errorf("when a knows them: %v, want b to have %d", s, early["b"])
		}
		a.end()
		b.end()
	})
}

// Two processes of the same name are never members at the same time.
func TestTheSameNameTwice(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, 2)
		begin := time.Now()
		first := w.start("a", 1, shard.Options{})
		time.Sleep(5 * time.Second)
		second := w.start("a", 2, shard.Options{})
		time.Sleep(30 * time.Second)
		if err := second.owner.Health(); err == nil ||
			!strings.Contains(err.Error(), "this replica is not a member: session a#") {
			t.Errorf("health of the second: %v", err)
		}
		if err := first.owner.Health(); err != nil {
			t.Error(err)
		}
		first.kill()
		time.Sleep(25 * time.Second)
		if s := second.owner.Stats(); s.Serving != 2 {
			t.Errorf("stats of the second: %+v, %v", s, second.reasons)
		}
		second.end()
		w.judge(begin)
	})
}

// A replica does not go on holding the lease of a cluster that it does not serve, not even if the answer to the write
// that took the lease was lost.
func TestAnAnswerIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, 5)
		a := w.start("a", 1, shard.Options{})
		a.delay(6 * time.Second) // most of the answers come after the timeout
		time.Sleep(time.Minute)
		a.delay(0)
		time.Sleep(10 * time.Second)
		if s := w.shares(); s["a"] != 5 {
			t.Errorf("shares %v: %v", s, a.reasons)
		}
		a.delay(5 * time.Second)
		a.end()
		b := w.start("b", 2, shard.Options{})
		time.Sleep(25 * time.Second)
		if s := w.shares(); s["b"] != 5 {
			t.Errorf("shares %v: %v", s, b.reasons)
		}
		b.end()
		if s := b.owner.Stats(); s.Releasing+s.Serving+s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}
