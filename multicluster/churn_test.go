package multicluster_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
)

// wantGoroutines fails the test if there are many more goroutines than before. Those of other tests may come and go.
func wantGoroutines(t *testing.T, before int) {
	t.Helper()
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// A name that comes and goes fifty times, with and without a pause, ends as it was last announced and leaves nothing.
func TestANameComesBackAgainAndAgain(t *testing.T) {
	for name, pause := range map[string]func(){
		"at once": func() {}, "when others ran": runtime.Gosched,
		"when all is done": synctest.Wait,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _, s := startRecording(t)
				synctest.Wait()
				before := runtime.NumGoroutine()
				for i := range 50 {
					w.joinAs(t, "eu", fmt.Sprint(i), s, nil)
					pause()
					if i%3 == 0 {
						w.fleet.Leave("eu")
					}
				}
				w.wantStates(t, "in the end", "eu Live")
				if c, err := w.GetCluster(t.Context(), "eu"); err != nil || c.Info().Identity != "49" {
					t.Errorf("%+v, %v", c.Info(), err)
				}
				w.fleet.Leave("eu")
				w.wantStates(t, "left", "")
				wantGoroutines(t, before)
				if stats := w.Stats(); stats.Left[multicluster.Live] != stats.Left[multicluster.Draining] ||
					stats.Left[multicluster.Live] == 0 {
					t.Errorf("%+v", stats)
				}
			})
		})
	}
}

// A cluster that does not answer can leave at once, and so can the process.
func TestLeavingAndStoppingWhileJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		w.complete(t, &recorder{})
		w.start(t)
		silent := newSite(t)
		silent.setVerdict(neverAnswer)
		synctest.Wait()
		before, began := runtime.NumGoroutine(), time.Now()
		join := func() {
			for i := range 100 {
				w.join(t, fmt.Sprint("c-", i), silent)
			}
			synctest.Wait()
			if n := w.Stats().Clusters[multicluster.Joining]; n != 100 {
				t.Errorf("%d are being reached", n)
			}
		}
		join()
		for i := range 100 {
			w.fleet.Leave(fmt.Sprint("c-", i))
		}
		w.wantStates(t, "left", "")
		wantGoroutines(t, before)
		join()
		w.end(t)
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// Many goroutines announce clusters at once, twice each, and call Leave for clusters that were never announced.
func TestAHundredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, r, s := startRecording(t)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				w.join(t, fmt.Sprint("c-", i), s)
				w.join(t, fmt.Sprint("c-", i), s)
				w.fleet.Leave(fmt.Sprint("unknown-", i))
			})
		}
		all.Wait()
		if got := r.take(); len(got) != 100 || len(slices.Compact(got)) != 100 {
			t.Errorf("%d requests", len(got))
		}
	})
}

// A cluster that was never ready is logged and counted like others when it leaves.
func TestWaitingClustersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		w.start(t)
		for range 2 {
			if err := w.fleet.Join(multicluster.Announcement{Name: "eu", NotReady: "being provisioned"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			w.fleet.Leave("eu")
			w.wantStates(t, "left", "")
		}
		if lines := w.logs.with(
			`cluster="eu" before="Waiting" duration="1m0s" state="Gone" reason="left the fleet"`,
		); len(lines) != 2 {
			t.Errorf("lines %q", lines)
		}
		stats := w.Stats()
		if n := stats.Transitions[multicluster.Transition{To: multicluster.Gone, Reason: "left the fleet"}]; n != 2 ||
			stats.Spent[multicluster.Waiting] != 2*time.Minute {
			t.Errorf("%+v", stats)
		}
	})
}

// Handlers of clusters may announce others and may be slow: announcing does not wait for them.
func TestHandlersOfClustersMayAnnounceOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		s, other := newSite(t), newSite(t)
		slow := make(chan struct{})
		onLive := func(context.Context, *multicluster.Cluster) ([]multicluster.Request, error) {
			<-slow
			return nil, nil
		}
		onGone := func(context.Context, multicluster.ClusterInfo) []multicluster.Request {
			w.join(t, "other", other)
			return nil
		}
		b := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).WatchesClusters(onLive, onGone)
		if err := b.WithClusterFilter(multicluster.MatchLabels(map[string]string{"env": "prod"})).Complete(
			&recorder{},
		); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		w.joinAs(t, "eu", "1", s, map[string]string{"env": "prod"})
		synctest.Wait() // in OnLive
		w.joinAs(t, "eu", "1", s, map[string]string{"env": "test"})
		w.wantStates(t, "while a handler takes its time", "eu Live")
		close(slow)
		w.wantStates(t, "announced by a handler", "eu Live, other Live")
	})
}

// Labels that change while the cluster is being reached take effect.
func TestLabelsChangeWhileJoining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		controllers := map[string]*recorder{"prod": {}, "test": {}}
		for env, r := range controllers {
			b := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).Named(env)
			if err := b.WithClusterFilter(multicluster.MatchLabels(map[string]string{"env": env})).Complete(
				r,
			); err != nil {
				t.Fatal(err)
			}
		}
		w.start(t)
		s := newSite(t)
		s.create(t, "x")
		s.setVerdict(dropConnection)
		w.joinAs(t, "eu", "1", s, map[string]string{"env": "prod"})
		synctest.Wait()
		w.joinAs(t, "eu", "1", s, map[string]string{"env": "test"})
		s.setVerdict(nil)
		time.Sleep(time.Minute)
		controllers["prod"].want(t, "labelled otherwise before it was reached")
		controllers["test"].want(t, "labelled so before it was reached", "cluster://eu/default/x")
	})
}

// waitForState waits until a cluster's status has this state and contains this text.
func (w *world) waitForState(t *testing.T, name string, state multicluster.State, reason string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c, err := w.Status(name)
		if err == nil && c.State == state && strings.Contains(c.Reason, reason) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s is %v: %q, %v; want %v: %q", name, c.State, c.Reason, err, state, reason)
			return
		}
	}
}
