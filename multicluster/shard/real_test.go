package shard_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/shard"
	"github.com/flyball-dev/flyball/reconcile"
)

// startManager starts a replica that is a manager with a fleet. Its controller writes to every cluster each second. It
// checks neither its context nor whether the replica still holds the cluster.
func (w *world) startManager(name string, seed uint64) *replica {
	w.t.Helper()
	r := &replica{
		t: w.t, world: w, name: name, local: newNetwork(seed), network: newNetwork(seed + 1),
		done: make(chan struct{}), reasons: map[string]string{},
	}
	config := w.local.RESTConfig()
	config.UserAgent = name
	config.Wrap(r.local.over)
	config.Wrap(r.local.withPauses)
	var err error
	if r.owner, err = shard.New(config, shard.Options{Identity: name}); err != nil {
		w.t.Fatal(err)
	}
	local, err := manager.New(config, manager.Options{GracefulTimeout: 2 * slowest})
	if err != nil {
		w.t.Fatal(err)
	}
	r.fleet, err = multicluster.New(local, multicluster.Options{
		Owner: r.owner, Providers: []multicluster.Provider{announced(r.announcements())},
		JoinBackoff: informer.Backoff{Min: time.Second, Max: 2 * time.Second},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	err = multicluster.ControllerManagedBy(r.fleet).For(&corev1.ConfigMap{}).Complete(
		reconcile.Func[multicluster.Request](r.reconcile),
	)
	if err != nil {
		w.t.Fatal(err)
	}
	r.life, r.killed = context.WithCancel(context.Background())
	w.t.Cleanup(r.killed)
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	r.stop = stop
	go func() {
		defer close(r.done)
		if err := local.Run(ctx); err != nil && r.life.Err() == nil {
			w.t.Errorf("%s: %v", name, err)
		}
	}()
	return r
}

// announced is a provider of a fixed list of clusters.
type announced []multicluster.Announcement

func (announced) Name() string { return "announced" }

func (announced) Health() error { return nil }

func (a announced) Run(_ context.Context, fleet multicluster.Fleet) error {
	for _, cluster := range a {
		if err := fleet.Join(cluster); err != nil {
			return err
		}
	}
	fleet.Synced()
	return nil
}

func (r *replica) announcements() (all []multicluster.Announcement) {
	for name, server := range r.world.clusters {
		config := server.RESTConfig()
		config.UserAgent = r.name
		config.Wrap(r.network.over)
		all = append(all, multicluster.Announcement{Name: name, Config: config})
	}
	return all
}

// reconcile writes, and comes again a second later. Its own writes do not trigger it: one that changes nothing makes no
// event.
func (r *replica) reconcile(ctx context.Context, request multicluster.Request) (reconcile.Result, error) {
	again := reconcile.Result{RequeueAfter: time.Second}
	if request.Name != "shared" {
		return again, nil
	}
	cluster, err := r.fleet.GetCluster(ctx, request.Cluster)
	if err != nil {
		return again, nil
	}
	config := cluster.Config()
	client := kubernetes.NewForConfigOrDie(config)
	r.network.pause()
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shared"},
		Data:       map[string]string{"by": r.name},
	}
	careless, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*slowest)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	if _, err = client.CoreV1().ConfigMaps("default").Update(careless, cm, metav1.UpdateOptions{}); errors.Is(err,
		multicluster.ErrNotOwner) || errors.Is(err, multicluster.ErrClusterGone) {
		r.mu.Lock()
		r.refused++
		r.mu.Unlock()
	}
	return again, nil
}

// TestNoTwoWritersInAFleet is TestNoTwoWriters with fleets of clusters and their controllers. FLYBALL_REAL_FLEETS=50
// runs more seeds.
func TestNoTwoWritersInAFleet(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("FLYBALL_REAL_FLEETS"))
	if err != nil {
		seeds = 2
	}
	var total verdict
	for seed := range uint64(seeds) {
		inBubble(t, func(t *testing.T) {
			total.add(
				runFailures(t, seed, 3,
					func(w *world, name string, seed uint64) *replica { return w.startManager(name, seed) }),
			)
		})
	}
	t.Logf("%d seeds: %d writes, %d tenures, %d writes refused, %d late ones accepted; the longest gap %v, in %s",
		seeds, total.writes, total.moves, total.refused, total.late, total.gap, total.at)
	if total.late > 0 || total.moves < 8*seeds {
		t.Error("want no late write accepted, and many tenures")
	}
}

// A fleet shows why it does not serve a cluster, and hands clusters over when a replica starts or stops.
func TestAFleetIsHandedOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 1))
		w := newWorld(t, 6)
		begin := time.Now()
		a := w.startManager("a", random.Uint64())
		time.Sleep(5 * time.Second)
		b := w.startManager("b", random.Uint64())
		time.Sleep(10 * time.Second)
		shares := w.shares()
		if shares["a"] == 0 || shares["b"] == 0 || shares[""] > 0 {
			t.Errorf("shares %v", shares)
		}
		for _, c := range b.fleet.Clusters() {
			if holder := w.holder(c.Name); holder == "b" && c.State != multicluster.Live || holder == "a" &&
				!strings.HasPrefix(c.Reason, "served by a") {
				t.Errorf("%s is held by %s, and b shows %v: %s", c.Name, holder, c.State, c.Reason)
			}
		}
		a.end()
		time.Sleep(2 * time.Second)
		if shares := w.shares(); shares["b"] != 6 {
			t.Errorf("shares after a has ended: %v", shares)
		}
		b.end()
		v := w.judge(begin)
		t.Logf("%d writes, the longest gap %v", v.writes, v.gap)
		if v.gap > 5*time.Second {
			t.Errorf("gap %v at %s", v.gap, v.at)
		}
	})
}
