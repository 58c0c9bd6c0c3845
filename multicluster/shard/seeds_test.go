package shard_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/multicluster/shard"
)

// TestNoTwoWriters has three replicas share clusters while one after the other fails, at random and in every way:
// killed, stopped, partitioned from everything or from the leases only, slowed down, ended. It searches the clusters'
// audit logs for writes that were accepted from a replica that did not hold the lease, and for the longest time in
// which a cluster received no write. FLYBALL_FLEETS=200 runs more seeds.
func TestNoTwoWriters(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("FLYBALL_FLEETS"))
	if err != nil {
		seeds = 3
	}
	var total verdict
	for seed := range uint64(seeds) {
		inBubble(t, func(t *testing.T) { total.add(runFailures(t, seed, 4, startSimple)) })
	}
	t.Logf("%d seeds: %d writes, %d tenures, %d writes refused, %d late ones accepted; the longest gap %v, in %s",
		seeds, total.writes, total.moves, total.refused, total.late, total.gap, total.at)
	if total.late > 0 || total.refused == 0 || total.moves < 8*seeds {
		t.Error("want no late write accepted, some refused, and many tenures")
	}
}

func (v *verdict) add(other verdict) {
	v.writes += other.writes
	v.late += other.late
	v.moves += other.moves
	v.refused += other.refused
	if other.gap > v.gap {
		v.gap, v.at = other.gap, other.at
	}
}

// failures has the ways in which a replica fails. f begins the failure, and the function that it returns ends it. After
// a fatal failure, the replica is started anew.
var failures = []struct {
	name  string
	fatal bool
	f     func(r *replica, random *rand.Rand) (end func())
}{
	{"killed", true, func(r *replica, _ *rand.Rand) func() { r.kill(); return func() {} }},
	{"ended", true, func(r *replica, _ *rand.Rand) func() { r.end(); return func() {} }},
	{"stopped", false, func(r *replica, _ *rand.Rand) func() { return r.pause() }},
	{"stopped for long", false, func(r *replica, _ *rand.Rand) func() {
		resume := r.pause()
		time.Sleep(bound)
		return resume
	}},
	{"partitioned", false, func(r *replica, _ *rand.Rand) func() { return r.partition() }},
	{
		"partitioned from the local: the worst case, its writes would arrive", false,
		func(r *replica, _ *rand.Rand) func() { return r.local.partition() },
	},
	{"stopped, and then partitioned from the local", false, func(r *replica, random *rand.Rand) func() {
		resume := r.pause()
		time.Sleep(time.Duration(random.IntN(12_000)) * time.Millisecond)
		heal := r.local.partition()
		resume()
		return heal
	}},
	{"slow", false, func(r *replica, random *rand.Rand) func() {
		r.delay(time.Duration(random.Int64N(int64(slowest))))
		return func() { r.delay(40 * time.Millisecond) }
	}},
}

// slowest is the longest time that a request of a slow replica takes. Up to half of it is the way to the server. That
// half must be less than the margin between RenewDeadline and LeaseDuration.
const slowest = 6 * time.Second

func startSimple(w *world, name string, seed uint64) *replica {
	return w.start(name, seed, shard.Options{})
}

// runFailures makes replicas fail in each way once, in a random order, and returns the verdict.
func runFailures(t *testing.T, seed uint64, clusters int,
	start func(w *world, name string, seed uint64) *replica,
) verdict {
	random := rand.New(rand.NewPCG(seed, 17))
	w := newWorld(t, clusters)
	begin := time.Now()
	var all []*replica
	for i, name := range []string{"a", "b", "c"} {
		all = append(all, start(w, name, seed+uint64(i)))
		time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
	}
	var total verdict
	for _, way := range random.Perm(len(failures)) {
		// Long enough for a replica that came back to be a member again, because the bound holds only if the two other
		// replicas are healthy.
		time.Sleep(time.Duration(18_000+random.IntN(10_000)) * time.Millisecond)
		i := random.IntN(len(all))
		outage := time.Duration(1000+random.IntN(30_000)) * time.Millisecond
		end := failures[way].f(all[i], random)
		time.Sleep(outage)
		end()
		if failures[way].fatal {
			total.refused += all[i].refused
			all[i] = start(w, all[i].name, seed+uint64(i))
		}
	}
	time.Sleep(30 * time.Second)
	for cluster, holder := range w.holders() {
		if holder == "" {
			t.Errorf("seed %d: nobody serves %s in the end", seed, cluster)
		}
	}
	for _, r := range all {
		total.refused += r.refused
		r.end()
	}
	for cluster, holder := range w.holders() {
		if holder != "" {
			t.Errorf("seed %d: %s is held by %s when all have ended", seed, cluster, holder)
		}
	}
	v := w.judge(begin)
	v.at = fmt.Sprintf("seed %d, %s", seed, v.at)
	if most := bound + slowest; v.gap > most {
		t.Errorf("a gap of %v, want at most %v: %s", v.gap, most, v.at)
	}
	total.add(v)
	return total
}
