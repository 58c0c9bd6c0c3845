package takeover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	peer "sigs.k8s.io/controller-runtime"
	peerclient "sigs.k8s.io/controller-runtime/pkg/client"
	peercontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	peermetrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/leader"
)

const (
	namespace = "default"
	lease     = "takeover"
)

// The times of the lease: the predecessor releases it, so only the retry period matters, which is not in the figures.
var times = leader.Options{
	LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
	RetryPeriod: 200 * time.Millisecond,
}

// followers are the processes that are compared.
var followers = []struct {
	name  string
	start func(t *testing.T, config *rest.Config) (run func(context.Context) error)
}{
	{"Flyball", startOurs},
	{
		"controller-runtime",
		func(t *testing.T, c *rest.Config) func(context.Context) error { return startPeer(t, c, false) },
	},
	{
		"controller-runtime, EnableWarmup",
		func(t *testing.T, c *rest.Config) func(context.Context) error { return startPeer(t, c, true) },
	},
}

// TestTakeover measures a takeover. A follower has a controller of FLYBALL_TAKEOVER (500) ConfigMaps of a kilobyte
// each. The leader releases the lease after one of them was changed. The result is the time from the write of the lease
// until the follower has made the write that the change requires. With the environment variable set, the test prints a
// table of eleven rounds; otherwise it plays one round and checks its requests.
func TestTakeover(t *testing.T) {
	objects, err := strconv.Atoi(os.Getenv("FLYBALL_TAKEOVER"))
	rounds := 11
	if err != nil {
		objects, rounds = 500, 1
	}
	peer.SetLogger(klog.Logger{})
	server, config := serve(t, objects)
	var table strings.Builder
	for _, f := range followers {
		t.Run(f.name, func(t *testing.T) {
			var took, used []time.Duration
			asked := 0
			for round := range rounds {
				got := takeOver(t, server, config, f.start, objects, round)
				took, used = append(took, got.took), append(used, got.used)
				asked += got.asked
			}
			slices.Sort(took)
			slices.Sort(used)
			fmt.Fprintf(&table,
				"%-34s first write after %7.1f ms (median), %7.1f ms (worst), processor time %7.1f ms (median), %d "+
					"lists and watches in %d rounds\n",
				f.name, ms(took[len(took)/2]), ms(took[len(took)-1]), ms(used[len(used)/2]), asked, rounds)
			if f.name == "Flyball" && asked > 0 {
				t.Errorf("%d lists and watches after the lease: the caches were not warm", asked)
			}
		})
	}
	t.Logf("%d objects:\n%s", objects, table.String())
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// serve is an API over loopback with the objects, all of them as they should be.
func serve(t *testing.T, objects int) (*localapi.Server, *rest.Config) {
	t.Helper()
	server, err := localapi.New(localapi.Options{Audit: &audit.Log{}, NoKubernetesService: true})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		<-served
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	var all []runtime.Object
	for i := range objects {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("object-%05d", i)},
		}
		cm.Data = map[string]string{"want": "0", "have": "0", "filling": strings.Repeat(fmt.Sprintf("%08d", i), 128)}
		all = append(all, cm)
	}
	if err := server.Seed(ctx, all...); err != nil {
		t.Fatal(err)
	}
	return server, &rest.Config{Host: "http://" + listener.Addr().String(), QPS: -1}
}

// result is one takeover.
type result struct {
	took, used time.Duration
	asked      int // lists and watches after the lease was taken
}

func takeOver(t *testing.T, server *localapi.Server, config *rest.Config,
	start func(*testing.T, *rest.Config) func(context.Context) error, objects, round int,
) result {
	t.Helper()
	admin := kubernetes.NewForConfigOrDie(server.RESTConfig())
	leases := admin.CoordinationV1().Leases(namespace)
	held := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: lease}}
	held.Spec = coordinationv1.LeaseSpec{
		HolderIdentity:       ptr.To("predecessor"),
		LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro()),
	}
	held, err := leases.Create(t.Context(), held, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	run := start(t, config)
	go func() { done <- run(ctx) }()
	settle(server)

	name := fmt.Sprintf("object-%05d", rand.New(rand.NewPCG(uint64(round), 3)).IntN(objects))
	want := fmt.Sprint(time.Now().UnixNano())
	changed, err := admin.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed.Data["want"] = want
	if _, err = admin.CoreV1().ConfigMaps(namespace).Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // it reaches the caches
	before := len(server.Audit().Entries(nil))
	used := cpuTime()
	held.Spec.HolderIdentity, held.Spec.LeaseDurationSeconds = ptr.To(""), ptr.To[int32](1) // as a leader gives it back
	if _, err = leases.Update(t.Context(), held, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, ok := result{}, false
	for !ok {
		time.Sleep(time.Millisecond)
		got, ok = judge(server.Audit().Entries(nil)[before:], name)
	}
	got.used = cpuTime() - used
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := leases.Delete(t.Context(), lease, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return got
}

// settle waits until nothing but the lease was asked for during two seconds: the follower has what it wants to have.
func settle(server *localapi.Server) {
	for last, still := -1, 0; still < 20; still++ {
		n := len(server.Audit().Entries(func(e audit.Entry) bool { return e.Resource == "configmaps" }))
		if n != last {
			last, still = n, 0
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// judge finds the time from the lease to the write.
func judge(entries []audit.Entry, name string) (r result, ok bool) {
	var taken time.Time
	for i, e := range entries {
		switch {
		case e.Resource == "leases" && e.Mutates() && i > 0 && taken.IsZero(): // the first is the release
			taken = e.Time
		case e.Resource == "configmaps" && (e.Verb == "list" || e.Verb == "watch"):
			r.asked++
		case e.Resource == "configmaps" && e.Mutates() && e.Name == name && !taken.IsZero():
			r.took = e.Time.Sub(taken)
			return r, true
		}
	}
	return r, false
}

func startOurs(t *testing.T, config *rest.Config) func(context.Context) error {
	t.Helper()
	m, err := ctrl.NewManager(config, ctrl.Options{LeaderElection: manager.LeaderElection{
		Enabled: true, Namespace: namespace, Name: lease, Options: times,
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := m.GetClient()
	err = ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(ctrl.ReconcilerFunc(
		func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			var cm corev1.ConfigMap
			if err := c.Get(ctx, r.NamespacedName, &cm); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if cm.Data["want"] == cm.Data["have"] {
				return ctrl.Result{}, nil
			}
			cm.Data["have"] = cm.Data["want"]
			return ctrl.Result{}, c.Update(ctx, &cm)
		}))
	if err != nil {
		t.Fatal(err)
	}
	return m.Run
}

func startPeer(t *testing.T, config *rest.Config, warm bool) func(context.Context) error {
	t.Helper()
	m, err := peer.NewManager(config, peer.Options{
		LeaderElection: true, LeaderElectionID: lease, LeaderElectionNamespace: namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &times.LeaseDuration, RenewDeadline: &times.RenewDeadline,
		RetryPeriod: &times.RetryPeriod,
		Metrics:     peermetrics.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := m.GetClient()
	r := peerReconciler(func(ctx context.Context, r peer.Request) (peer.Result, error) {
		var cm corev1.ConfigMap
		if err := c.Get(ctx, r.NamespacedName, &cm); err != nil {
			return peer.Result{}, peerclient.IgnoreNotFound(err)
		}
		if cm.Data["want"] == cm.Data["have"] {
			return peer.Result{}, nil
		}
		cm.Data["have"] = cm.Data["want"]
		return peer.Result{}, c.Update(ctx, &cm)
	})
	err = peer.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).
		WithOptions(peercontroller.Options{EnableWarmup: &warm, SkipNameValidation: ptr.To(true)}).Complete(r)
	if err != nil {
		t.Fatal(err)
	}
	return m.Start
}

type peerReconciler func(context.Context, peer.Request) (peer.Result, error)

func (f peerReconciler) Reconcile(ctx context.Context, r peer.Request) (peer.Result, error) {
	return f(ctx, r)
}

// cpuTime is what this process, follower and API server together, has used so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
