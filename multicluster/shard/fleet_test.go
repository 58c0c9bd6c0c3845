package shard_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/shard"
)

// world has API servers for a local cluster and for the clusters of a fleet, and the history of the leases in the local
// cluster.
type world struct {
	t        *testing.T
	local    *localapi.Server
	admin    kubernetes.Interface
	clusters map[string]*localapi.Server

	mu sync.Mutex
	// held has the history of each cluster's lease: its holders, and when each one took it.
	held map[string][]leaseState
}

// leaseState is a state of a lease.
type leaseState struct {
	from   time.Time
	holder string // the replica; "" while it is free
}

func newWorld(t *testing.T, clusters int) *world {
	t.Helper()
	w := &world{t: t, local: serve(t), clusters: map[string]*localapi.Server{}, held: map[string][]leaseState{}}
	w.admin = kubernetes.NewForConfigOrDie(w.local.RESTConfig())
	for i := range clusters {
		server := serve(t)
		shared := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shared"}}
		if err := server.Seed(t.Context(), shared); err != nil {
			t.Fatal(err)
		}
		w.clusters[fmt.Sprintf("zone-%d/cluster-%d", i%3, i)] = server
	}
	w.watchLeases(t)
	return w
}

func serve(t *testing.T) *localapi.Server {
	t.Helper()
	return localapi.NewTestWith(t, localapi.Options{NoKubernetesService: true}).Server
}

// watchLeases records the history of the leases.
func (w *world) watchLeases(t *testing.T) {
	t.Helper()
	leases, err := w.admin.CoordinationV1().Leases("kube-system").Watch(t.Context(),
		metav1.ListOptions{LabelSelector: shard.KindLabel + "!=replica"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range leases.ResultChan() {
			if l, ok := e.Object.(*coordinationv1.Lease); ok {
				w.note(l, e.Type == watch.Deleted)
			}
		}
	}()
	t.Cleanup(func() {
		leases.Stop()
		<-ended
	})
}

func (w *world) note(l *coordinationv1.Lease, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, holder := l.Annotations[shard.NameAnnotation], ""
	if !deleted && l.Spec.HolderIdentity != nil {
		holder, _, _ = strings.Cut(*l.Spec.HolderIdentity, "#")
	}
	history := w.held[name]
	if n := len(history); n == 0 || history[n-1].holder != holder {
		w.held[name] = append(history, leaseState{time.Now(), holder})
	}
}

// holder returns the replica that holds the lease of a cluster.
func (w *world) holder(cluster string) string { return w.holderAt(cluster, time.Now()) }

func (w *world) holderAt(cluster string, at time.Time) (holder string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.held[cluster] {
		if h.from.After(at) {
			break
		}
		holder = h.holder
	}
	return holder
}

// shares returns how many clusters each replica holds.
func (w *world) shares() map[string]int {
	shares := map[string]int{}
	for name := range w.clusters {
		shares[w.holder(name)]++
	}
	return shares
}

// replica is a simulated process with an owner. In place of a fleet, it has the simplest code that obeys the rules for
// owners.
type replica struct {
	t     *testing.T
	world *world
	name  string
	owner *shard.Owner
	// fleet is not nil if a manager runs the fleet.
	fleet *multicluster.Manager
	// local is the network to the local cluster, and network is the one to the other clusters.
	local, network *network
	// every is the interval between two writes to each cluster.
	every time.Duration
	// stuck are clusters whose work never ends.
	stuck map[string]bool

	stop context.CancelFunc
	// life is done when the process is killed. Everything in the process ends with it.
	life   context.Context
	killed context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	refused int
	reasons map[string]string
}

func (w *world) start(name string, seed uint64, o shard.Options) *replica {
	return w.startKnowing(name, seed, o, slices.Sorted(maps.Keys(w.clusters)))
}

// startKnowing starts a replica that knows only some of the clusters.
func (w *world) startKnowing(name string, seed uint64, o shard.Options, clusters []string) *replica {
	w.t.Helper()
	r := &replica{
		t: w.t, world: w, name: name, local: newNetwork(seed), network: newNetwork(seed + 1), every: time.Second,
		done: make(chan struct{}), stuck: map[string]bool{}, reasons: map[string]string{},
	}
	config := w.local.RESTConfig()
	config.UserAgent = name
	config.Wrap(r.local.over)
	config.Wrap(r.local.withPauses)
	r.life, r.killed = context.WithCancel(context.Background())
	w.t.Cleanup(r.killed)
	o.Identity = name
	var err error
	if r.owner, err = shard.New(config, o); err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	r.stop = stop
	go r.run(ctx, clusters)
	return r
}

// run serves clusters until ctx is done. Like a fleet, it releases them before the owner ends.
func (r *replica) run(ctx context.Context, clusters []string) {
	defer close(r.done)
	owning, endOwner := context.WithCancel(context.WithoutCancel(ctx))
	var owner, lives sync.WaitGroup
	owner.Go(func() {
		if err := r.owner.Run(owning); err != nil {
			r.t.Error(err)
		}
	})
	for _, name := range clusters {
		lives.Go(func() { r.serveCluster(ctx, name) })
	}
	<-ctx.Done()
	r.owner.Leave()
	lives.Wait()
	endOwner()
	owner.Wait()
}

// serveCluster serves one cluster whenever this replica holds it.
func (r *replica) serveCluster(ctx context.Context, name string) {
	config := r.world.clusters[name].RESTConfig()
	config.UserAgent = r.name
	config.Wrap(r.network.over)
	client := kubernetes.NewForConfigOrDie(config)
	for ctx.Err() == nil {
		tenure, err := r.owner.Acquire(ctx, multicluster.ClusterInfo{Name: name},
			func(why string) { r.recordReason(name, why) })
		if err != nil {
			continue
		}
		r.recordReason(name, "served here")
		left := r.serve(ctx, tenure, name, client)
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		tenure.Release(release, left)
		cancel()
	}
}

func (r *replica) recordReason(cluster, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons[cluster] = what
}

func (r *replica) reasonOf(cluster string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reasons[cluster]
}

// serve writes until the tenure ends. It is as careless as possible: it calls only Check.
func (r *replica) serve(ctx context.Context, tenure multicluster.Tenure, name string,
	client kubernetes.Interface,
) (left error) {
	for {
		// a process may be stopped between any two steps; right before it reads the clock is the worst place
		r.network.pause()
		if err := tenure.Check(); err == nil {
			r.write(client)
		} else {
			r.mu.Lock()
			r.refused++
			r.mu.Unlock()
		}
		select {
		case <-time.After(r.every):
			continue
		case <-tenure.Ending():
		case <-tenure.Lost():
		case <-ctx.Done():
		case <-r.life.Done():
		}
		if r.stuck[name] {
			return fmt.Errorf("work for %s does not end", name)
		}
		return nil
	}
}

// write sends one write and waits for its answer, whatever happens to the tenure. The write has no resource version, so
// the server accepts it in any state of the object.
func (r *replica) write(client kubernetes.Interface) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*slowest)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)() // killed
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shared"},
		Data:       map[string]string{"by": r.name},
	}
	_, _ = client.CoreV1().ConfigMaps("default").Update(ctx, cm, metav1.UpdateOptions{})
}

// end is like SIGTERM. It waits for the process.
func (r *replica) end() {
	r.stop()
	<-r.done
}

// kill is like SIGKILL: nothing that the process sends arrives any more.
func (r *replica) kill() {
	r.partition()
	r.killed()
	r.stop()
	<-r.done
}

// partition cuts the replica off from all servers.
func (r *replica) partition() (heal func()) {
	local, clusters := r.local.partition(), r.network.partition()
	return func() { local(); clusters() }
}

// pause is like SIGSTOP. The function that it returns is like SIGCONT.
func (r *replica) pause() (resume func()) {
	local, clusters := r.local.stop(), r.network.stop()
	return func() { clusters(); local() } // what the process was about to write is sent first
}

// delay sets the longest time that each of the replica's requests takes.
func (r *replica) delay(slow time.Duration) {
	r.local.delay(slow)
	r.network.delay(slow)
}

// verdict is what the audit logs of the clusters show.
type verdict struct {
	writes, late, refused, moves int
	// gap is the longest time in which a cluster received no write, and at is where that was.
	gap time.Duration
	at  string
}

// judge compares the writes that the clusters accepted with the holders of their leases.
func (w *world) judge(from time.Time) (v verdict) {
	for name, server := range w.clusters {
		last := from
		for _, e := range server.Audit().Writes() {
			if e.Verb != "update" || e.Code != http.StatusOK {
				continue
			}
			v.writes++
			if holder := w.holderAt(name, e.Time); holder != e.UserAgent {
				v.late++
				w.t.Errorf("%s accepted a write from %s at %s, while its lease was held by %q: %s", name, e.UserAgent,
					e.Time.Sub(from), holder, w.history(name, from))
			}
			if gap := e.Time.Sub(last); gap > v.gap && e.Time.After(from) {
				v.gap, v.at = gap,
					fmt.Sprintf("%s, %v after the start: %s", name, e.Time.Sub(from), w.history(name, from))
			}
			last = e.Time
		}
		w.mu.Lock()
		v.moves += len(w.held[name]) / 2
		w.mu.Unlock()
	}
	return v
}

func (w *world) history(name string, from time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, h := range w.held[name] {
		fmt.Fprintf(&b, "%v %q; ", h.from.Sub(from), h.holder)
	}
	return b.String()
}

// inBubble runs f on virtual time.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
