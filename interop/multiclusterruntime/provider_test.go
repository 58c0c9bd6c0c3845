package multiclusterruntime_test

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	peerqueue "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	peer "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/providers/clusters"

	"github.com/flyball-dev/flyball/interop/multiclusterruntime"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
	own "github.com/flyball-dev/flyball/reconcile"
)

// fleet writes down what it is told.
type fleet struct {
	mu   sync.Mutex
	told []string
	err  error
}

func (f *fleet) tell(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, fmt.Sprintf(format, args...))
}

func (f *fleet) Join(a multicluster.Announcement) error {
	f.tell("join %s at %s, identity %q", a.Name, a.Config.Host, a.Identity)
	return f.err
}

func (f *fleet) Leave(name string) { f.tell("leave %s", name) }
func (f *fleet) Synced()           { f.tell("synced") }

// want compares what was told since the last call.
func (f *fleet) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.told, want) {
		t.Errorf("told %q, want %q", f.told, want)
	}
	f.told = nil
}

// started is a provider whose Start is a function.
type started struct {
	peer.Provider
	start func(ctx context.Context, aware peer.Aware) error
}

func (s *started) Start(ctx context.Context, aware peer.Aware) error { return s.start(ctx, aware) }

// remote is a cluster of which only the config is used.
type remote struct {
	cluster.Cluster
	host string
}

func (s *remote) GetConfig() *rest.Config { return &rest.Config{Host: s.host} }

// TestProviderAnnouncesWhatIsEngaged has clusters come, be replaced, leave and stay.
func TestProviderAnnouncesWhatIsEngaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fleet
		var engaged peer.Aware
		p := multiclusterruntime.Provider(&started{start: func(ctx context.Context, aware peer.Aware) error {
			engaged = aware
			<-ctx.Done()
			return ctx.Err()
		}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx, &f) }()
		f.want(t, "synced")

		a, aGone := context.WithCancel(ctx)
		first := &remote{host: "one"}
		engage := func(ctx context.Context, name string, c cluster.Cluster) {
			t.Helper()
			if err := engaged.Engage(ctx, peer.ClusterName(name), c); err != nil {
				t.Error(err)
			}
		}
		engage(a, "a", first)
		engage(a, "a", first) // It is engaged.
		engage(ctx, "b", &remote{host: "two"})
		f.want(t, `join a at one, identity ""`, `join b at two, identity ""`)

		b, bGone := context.WithCancel(ctx)
		engage(b, "a", &remote{host: "three"})
		aGone() // That was the first one's.
		f.want(t, `join a at three, identity "replacement 1"`)
		bGone()
		f.want(t, "leave a")
		engage(ctx, "a", first)
		f.want(t, `join a at one, identity ""`)

		f.err = errors.New("the name is taken")
		if err := engaged.Engage(ctx, "c", first); !errors.Is(err, f.err) {
			t.Errorf("engage: %v, want %v", err, f.err)
		}
		f.want(t, `join c at one, identity ""`)

		stop()
		if err := <-done; err != nil {
			t.Errorf("stopped with %v", err)
		}
		f.want(t) // The clusters do not leave with the process.
		if err := engaged.Engage(t.Context(), "d", first); err == nil {
			t.Error("a cluster is engaged after the end")
		}
	})
}

// TestProviderThatFails: a second Run gives the provider time before the clusters leave that it has not engaged again.
func TestProviderThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f fleet
		broken := errors.New("broken")
		runs := 0
		p := multiclusterruntime.Provider(&started{start: func(ctx context.Context, aware peer.Aware) error {
			if runs++; runs == 1 {
				if err := aware.Engage(ctx, "a", &remote{host: "one"}); err != nil {
					t.Error(err)
				}
				return broken
			}
			time.Sleep(10 * time.Second)
			if err := aware.Engage(ctx, "a", &remote{host: "one"}); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return nil
		}})
		if err := p.Run(t.Context(), &f); !errors.Is(err, broken) {
			t.Errorf("run: %v, want %v", err, broken)
		}
		f.want(t, "synced", `join a at one, identity ""`)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx, &f) }()
		time.Sleep(29 * time.Second)
		f.want(t, `join a at one, identity ""`)
		time.Sleep(2 * time.Second)
		f.want(t, "synced")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestProviderOnOurFleet: a controller of Flyball's own works on the clusters of a provider of theirs.
func TestProviderOnOurFleet(t *testing.T) {
	theirs := clusters.New()
	card := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "card"}}
	for _, name := range []peer.ClusterName{"eu", "us"} {
		c, err := cluster.New(localapi.NewTest(t, card.DeepCopy()).RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		if err := theirs.Add(t.Context(), name, c); err != nil {
			t.Fatal(err)
		}
	}
	local, err := manager.New(localapi.NewTest(t).RESTConfig(), manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := multicluster.New(local, multicluster.Options{
		Providers: []multicluster.Provider{multiclusterruntime.Provider(theirs)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	seen := make(chan string, 10)
	err = multicluster.ControllerManagedBy(ours).For(&corev1.ConfigMap{}).Complete(own.Func[multicluster.Request](
		func(_ context.Context, r multicluster.Request) (own.Result, error) {
			seen <- r.Cluster
			return own.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- local.Run(ctx) }()
	got := []string{<-seen, <-seen}
	slices.Sort(got)
	if !slices.Equal(got, []string{"eu", "us"}) {
		t.Errorf("reconciled in %q", got)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestQueueTakesClustersInTurn: the one key of a small cluster is second, however many a large one has.
func TestQueueTakesClustersInTurn(t *testing.T) {
	q := multiclusterruntime.NewQueue("c", peerqueue.DefaultTypedControllerRateLimiter[mcreconcile.Request]())
	defer q.ShutDown()
	request := func(cluster, name string) mcreconcile.Request {
		r := mcreconcile.Request{ClusterName: peer.ClusterName(cluster), Request: reconcile.Request{}}
		r.Name = name
		return r
	}
	for i := range 3 {
		q.Add(request("large", fmt.Sprint(i)))
	}
	q.Add(request("small", "0"))
	var got []string
	for range 4 {
		r, _ := q.Get()
		got = append(got, r.ClusterName.String()+r.Name)
		q.Done(r)
	}
	if want := "large0 small0 large1 large2"; strings.Join(got, " ") != want {
		t.Errorf("order %q, want %q", got, want)
	}
}
