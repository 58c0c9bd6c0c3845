package shard_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/shard"
)

// idleFleet claims clusters and does nothing with them.
func (w *world) idleFleet(t *testing.T, name string, clusters int) (owner *shard.Owner, end func()) {
	t.Helper()
	owner, err := shard.New(w.local.RESTConfig(), shard.Options{Identity: name})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	done := make(chan error, 1)
	// The owner outlives the clusters, so that it can release their leases.
	owning, endOwner := context.WithCancel(context.WithoutCancel(ctx))
	go func() { done <- owner.Run(owning) }()
	go func() {
		defer endOwner()
		defer context.AfterFunc(ctx, owner.Leave)()
		var held sync.WaitGroup
		for i := range clusters {
			held.Go(func() {
				for ctx.Err() == nil {
					hold(ctx, owner, fmt.Sprintf("cluster-%d", i))
				}
			})
		}
		held.Wait()
	}()
	return owner, func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// hold acquires a cluster and holds it for one tenure, without any work.
func hold(ctx context.Context, owner *shard.Owner, cluster string) {
	tenure, err := owner.Acquire(ctx, multicluster.ClusterInfo{Name: cluster}, func(string) {})
	if err != nil {
		return
	}
	select {
	case <-tenure.Ending():
	case <-tenure.Lost():
	case <-ctx.Done():
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	tenure.Release(release, nil)
}

// While nothing changes, 500 clusters put no more load on the local cluster than one does. A new replica moves only its
// share, at the configured rate.
func TestLoadOfManyClusters(t *testing.T) {
	const clusters = 500
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, 0)
		count := func(what string, during time.Duration) (requests int, perSecond float64) {
			w.local.Audit().Reset()
			time.Sleep(during)
			verbs := map[string]int{}
			peak, second, at := 0, 0, time.Time{}
			for _, e := range w.local.Audit().Entries(func(e audit.Entry) bool { return e.Resource == "leases" }) {
				verbs[e.Verb]++
				requests++
				if e.Time.Sub(at) >= time.Second {
					second, at = 0, e.Time
				}
				second++
				peak = max(peak, second)
			}
			perSecond = float64(requests) / during.Seconds()
			t.Logf("%s: %d requests in %v, %.1f a second, at most %d in one: %v", what, requests, during, perSecond,
				peak, verbs)
			return requests, perSecond
		}
		a, endA := w.idleFleet(t, "a", clusters)
		b, endB := w.idleFleet(t, "b", clusters)
		count("500 clusters, two replicas start", 20*time.Second)
		if _, perSecond := count("at rest with two", time.Minute); perSecond > 1.2 {
			t.Errorf("%.1f requests a second at rest", perSecond)
		}
		c, endC := w.idleFleet(t, "c", clusters)
		requests, _ := count("a third one comes", 20*time.Second)
		moves := int(c.Stats().Taken)
		if requests > 3*moves+60 || moves < clusters/3-50 || moves > clusters/3+50 {
			t.Errorf("%d moves, %d requests", moves, requests)
		}
		if _, perSecond := count("at rest with three", time.Minute); perSecond > 1.7 {
			t.Errorf("%.1f requests a second at rest", perSecond)
		}
		shares := []int{a.Stats().Serving, b.Stats().Serving, c.Stats().Serving}
		t.Logf("shares %v, moved %d", shares, moves)
		if shares[0]+shares[1]+shares[2] != clusters {
			t.Errorf("shares %v", shares)
		}
		go endC()
		if requests, _ := count("it leaves", 20*time.Second); requests > 2*moves+60 {
			t.Errorf("%d moves, %d requests", moves, requests)
		}
		if total := a.Stats().Serving + b.Stats().Serving; total != clusters {
			t.Errorf("%d are served", total)
		}
		endA()
		endB()
	})
}
