package multicluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
)

// Each change of state is logged once, and counted with its reason and the time spent.
func TestStateChangesAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		w.complete(t, &recorder{})
		w.start(t)
		s := newSite(t)
		s.setVerdict(dropConnection)
		w.join(t, "eu", s)
		time.Sleep(5 * time.Minute)
		s.setVerdict(nil)
		time.Sleep(5 * time.Minute)
		w.joinAs(t, "eu", "2", s, nil)
		synctest.Wait()
		w.fleet.Leave("eu")
		w.wantStates(t, "left", "")
		var logged []string
		for _, line := range w.logs.with("Cluster changed state") {
			_, rest, _ := strings.Cut(line, `state="`)
			state, rest, _ := strings.Cut(rest, `"`)
			_, rest, _ = strings.Cut(rest, `reason="`)
			reason, _, _ := strings.Cut(rest, `"`)
			logged = append(logged, strings.TrimSpace(state+" "+reason))
		}
		want := "Joining connecting, Live, Draining replaced by another cluster or endpoint, Gone replaced by " +
			"another cluster or endpoint, " +
			"Joining connecting, Live, Draining left the fleet, Gone left the fleet"
		if got := strings.Join(logged, ", "); got != want {
			t.Errorf("logged %s", got)
		}
		stats := w.Stats()
		for transition, n := range map[multicluster.Transition]uint64{
			{To: multicluster.Joining, Reason: "announced"}:           2,
			{To: multicluster.Live, Reason: "answered"}:               2,
			{To: multicluster.Draining, Reason: "left the fleet"}:     1,
			{To: multicluster.Gone, Reason: "left the fleet"}:         1,
			{To: multicluster.Waiting, Reason: "not ready"}:           0,
			{To: multicluster.Joining, Reason: "cannot be reached: "}: 0,
		} {
			if got := stats.Transitions[transition]; got != n {
				t.Errorf("%v: %d, want %d", transition, got, n)
			}
		}
		if took := stats.Spent[multicluster.Joining]; took < 5*time.Minute || took > 7*time.Minute ||
			stats.Left[multicluster.Joining] != 2 {
			t.Errorf("%v in Joining, left %d times", took, stats.Left[multicluster.Joining])
		}
		if stats.Attempts < 5 || stats.Attempts > 12 {
			t.Errorf("%d attempts in five minutes", stats.Attempts)
		}
	})
}

// A Live cluster that stops answering gets a reason in words, and does not make the process unready.
func TestUnreachableClusterIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		r := &recorder{then: func(ctx context.Context, _ multicluster.Request) (reconcile.Result, error) {
			c, err := clusterOf(ctx)
			if err != nil {
				return reconcile.Result{}, err
			}
			return reconcile.Result{RequeueAfter: time.Minute}, c.Get(ctx, keyOf("x"), &corev1.ConfigMap{}, client.Live)
		}}
		w.complete(t, r)
		w.start(t)
		s := newSite(t)
		s.create(t, "x")
		w.join(t, "eu", s)
		synctest.Wait()
		if note := w.Note(); note != "1 of 1 clusters are live" {
			t.Errorf("note: %s", note)
		}
		s.create(t, "y")
		s.setVerdict(dropConnection)
		if err := s.Seed(t.Context(), configMap("z")); err != nil { // the watch ends
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		if err := w.local.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		if note := w.Note(); !strings.HasPrefix(note,
			"1 of 1 clusters are live; eu: Live, cannot list configmaps at the cluster scope: ") {
			t.Errorf("note: %s", note)
		}
		s.setVerdict(nil)
		time.Sleep(5 * time.Minute)
		r.mu.Lock()
		back := r.of("cluster://eu/default/z")
		r.mu.Unlock()
		if back == 0 {
			t.Error("changes during the outage were not seen")
		}
		if note := w.Note(); note != "1 of 1 clusters are live" {
			t.Errorf("note: %s", note)
		}
		w.wantStates(t, "away and back", "eu Live")
	})
}

// MinLive makes the process unready while too few clusters are Live.
func TestMinLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{MinLive: 0.6}, manager.Options{})
		w.start(t)
		silent := newSite(t)
		silent.setVerdict(dropConnection)
		w.join(t, "a", newSite(t))
		w.join(t, "b", silent)
		if err := w.fleet.Join(multicluster.Announcement{Name: "c", NotReady: "being provisioned"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := w.local.Ready(); err == nil ||
			!strings.Contains(err.Error(), "fleet: 1 of 3 clusters are live; b: Joining, ") {
			t.Errorf("ready: %v", err)
		}
		w.join(t, "d", newSite(t))
		synctest.Wait()
		if err := w.local.Ready(); err != nil {
			t.Errorf("with two of three: %v", err)
		}
	})
}

// At the end of the process all clusters drain for as long as the local manager's GracefulTimeout allows.
func TestStopDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{DrainTimeout: time.Second},
			manager.Options{GracefulTimeout: 20 * time.Second})
		r := &recorder{then: func(ctx context.Context, r multicluster.Request) (reconcile.Result, error) {
			c, err := clusterOf(ctx)
			if err != nil || r.Name != "x" {
				return reconcile.Result{}, err
			}
			time.Sleep(15 * time.Second)
			c.Recorder("test").Eventf(configMap("x"), corev1.EventTypeNormal, "Done", "it is done")
			return reconcile.Result{}, c.Create(ctx, configMap("done"))
		}}
		w.complete(t, r)
		w.start(t)
		sites := []*site{newSite(t), newSite(t)}
		for i, s := range sites {
			s.create(t, "x")
			w.join(t, fmt.Sprint("c-", i), s)
		}
		synctest.Wait()
		began := time.Now()
		w.end(t)
		if took := time.Since(began); took != 15*time.Second {
			t.Errorf("it took %v", took)
		}
		for i, s := range sites {
			// The reconcile's write, and its event, in whatever order.
			if got := s.writes(); len(got) != 3 || !slices.Contains(got, "create default/done") {
				t.Errorf("cluster %d: %q", i, got)
			}
		}
		w.wantStates(t, "the end", "c-0 Gone, c-1 Gone")
	})
}

// scriptedProvider is a provider that takes its runs from a list of functions.
type scriptedProvider struct {
	mu   sync.Mutex
	sick error // what Health returns
	runs []func(ctx context.Context, fleet multicluster.Fleet) error
}

func (*scriptedProvider) Name() string { return "scripted" }

func (p *scriptedProvider) Health() error { return p.sick }

func (p *scriptedProvider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	p.mu.Lock()
	run := p.runs[0]
	p.runs = p.runs[1:]
	p.mu.Unlock()
	return run(ctx, fleet)
}

// A provider that fails takes no cluster away and is run again. Clusters that the new run does not announce leave.
func TestProviderIsRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sites := map[string]*site{"a": newSite(t), "b": newSite(t), "c": newSite(t)}
		var stale multicluster.Fleet
		join := func(fleet multicluster.Fleet, names ...string) error {
			var errs []error
			for _, name := range names {
				errs = append(errs, fleet.Join(multicluster.Announcement{Name: name, Config: sites[name].RESTConfig()}))
			}
			return errors.Join(errs...)
		}
		retry := make(chan struct{})
		p := &scriptedProvider{runs: []func(context.Context, multicluster.Fleet) error{
			func(_ context.Context, fleet multicluster.Fleet) error { // It fails before it has announced all.
				return errors.Join(join(fleet, "a"), errors.New("cannot list projects"))
			},
			func(_ context.Context, fleet multicluster.Fleet) error {
				stale = fleet
				err := join(fleet, "a", "b")
				fleet.Synced()
				<-retry
				return errors.Join(err, errors.New("the watch ended"))
			},
			func(_ context.Context, fleet multicluster.Fleet) error {
				stale.Leave("b") // Of a run that is over.
				if err := stale.Join(multicluster.Announcement{Name: "z", NotReady: "ghost"}); err != nil {
					return err
				}
				err := join(fleet, "b", "c")
				fleet.Synced()
				return err // It has no more clusters to announce.
			},
		}}
		w := newWorld(t, multicluster.Options{Providers: []multicluster.Provider{p}}, manager.Options{})
		r := &recorder{}
		w.complete(t, r)
		w.start(t)
		w.wantStates(t, "failed", "a Live")
		p.sick = errors.New("b: no kubeconfig")
		if !strings.HasSuffix(w.Note(), "; provider scripted: b: no kubeconfig") {
			t.Errorf("note %q does not show what the provider cannot announce", w.Note())
		}
		if err := w.local.Ready(); err == nil ||
			!strings.Contains(err.Error(), "provider scripted: cannot list projects") {
			t.Errorf("ready: %v", err)
		}
		time.Sleep(2 * time.Second)
		w.wantStates(t, "run again", "a Live, b Live")
		if err := w.local.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		if err := w.fleet.Join(multicluster.Announcement{Name: "a", NotReady: "mine"}); !errors.Is(err,
			multicluster.ErrNameTaken) || !strings.Contains(err.Error(), "scripted") {
			t.Errorf("a name of another provider: %v", err)
		}
		w.fleet.Leave("a")
		close(retry)
		time.Sleep(10 * time.Second)
		w.wantStates(t, "the third run", "b Live, c Live")
		if err := stale.Join(multicluster.Announcement{Name: "z", NotReady: "ghost"}); err != nil {
			t.Error(err)
		}
		w.wantStates(t, "after a run that is over has announced", "b Live, c Live")
		if err := w.fleet.Join(multicluster.Announcement{Name: "a", NotReady: "free again"}); err != nil {
			t.Error(err)
		}
		w.wantStates(t, "the name is free", "a Waiting, b Live, c Live")
	})
}

// New reports options that cannot be right.
func TestOptionsAreChecked(t *testing.T) {
	w := newWorld(t, multicluster.Options{}, manager.Options{})
	for says, o := range map[string]multicluster.Options{
		"fleet x: MinLive is 2":                         {Name: "x", MinLive: 2},
		"fleet x: Providers[0] is nil":                  {Name: "x", Providers: []multicluster.Provider{nil}},
		"fleet x: Options.Caches[0]: the object is nil": {Name: "x", Caches: []client.CacheOf{{}}},
		"Options.Caches[1]: /v1, Kind=Pod is listed twice": {
			Name: "x", Caches: []client.CacheOf{{Object: &corev1.Pod{}}, {Object: &corev1.Pod{}}},
		},
		"fleet fleet: manager: add fleet: a runnable of that": {},
	} {
		if _, err := multicluster.New(w.local, o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
	if _, err := multicluster.New(nil, multicluster.Options{}); err == nil {
		t.Error("no local manager, and no error")
	}
}
