package reconcile

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
)

func TestChanFeedsUntilClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := make(chan string, 1)
		keys <- "early"
		r := recorder(nil)
		c := start(t, r, Options[string]{}, Chan("webhook", keys))
		time.Sleep(time.Second)
		keys <- "late"
		close(keys)
		synctest.Wait()
		want(t, r.seen(), []string{"early@0s", "late@1s"})
		if err := c.Health(); err != nil {
			t.Error(err)
		}
		_ = c.end()
	})
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder(nil)
		source := Every(time.Minute, func(context.Context) []string { return []string{"a"} })
		c := start(t, r, Options[string]{}, source)
		time.Sleep(150 * time.Second)
		want(t, r.seen(), []string{"a@0s", "a@1m0s", "a@2m0s"})
		if err := c.Unwatch(t.Context(), source); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		want(t, r.seen(), []string{"a@0s", "a@1m0s", "a@2m0s"})
		_ = c.end()
	})
}

// One controller's output is another's input: what was emitted before the other ran is not lost, and the cause tells whence.
func TestOutputFeedsAnotherController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := NewOutput[string]("found")
		first := start(t, recorder(func(ctx context.Context, key string, _ int) (Result, error) {
			out.Emit(ctx, "from-"+key)
			out.Emit(ctx, "from-"+key)
			return Result{}, nil
		}), Options[string]{}, &script{keys: []string{"a", "b"}})
		var causes []string
		r := recorder(func(ctx context.Context, _ string, _ int) (Result, error) {
			for _, cause := range Causes(ctx) {
				causes = append(causes, cause.Source+" "+cause.Object)
			}
			return Result{}, nil
		})
		second := start(t, r, Options[string]{}, out)
		want(t, r.seen(), []string{"from-a@0s", "from-b@0s"})
		want(t, causes, []string{"found test a", "found test b"})
		first.Enqueue("a")
		synctest.Wait()
		want(t, r.seen(), []string{"from-a@0s", "from-b@0s", "from-a@0s"})
		_ = first.end()
		_ = second.end()
	})
}

// A source that is taken away takes its handlers along, and its informer if nobody else uses it; other sources never
// notice. What is left over would keep the bubble from ending.
func TestSourcesAddedAndRemovedFiftyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := localapi.NewTest(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stays"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "comes"}})
		factory, err := informer.NewFactory(api.RESTConfig(), informer.FactoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(quiet(t.Context()))
		var mu sync.Mutex
		seen := map[string]int{}
		c := New("test", Func[Request](func(_ context.Context, key Request) (Result, error) {
			mu.Lock()
			defer mu.Unlock()
			seen[key.Name]++
			return Result{}, nil
		}), Options[Request]{})
		stays := FactoryKind(factory, informer.InformerOptions{}, EnqueueObject[*corev1.ConfigMap]())
		if err := c.Watch(stays); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = factory.Run(ctx) })
		wg.Go(func() { _ = c.Run(ctx) })
		for round := range 50 {
			comes := FactoryKind(factory, informer.InformerOptions{}, EnqueueObject[*corev1.Secret]())
			if err := c.Watch(comes); err != nil {
				t.Fatal(err)
			}
			if round%2 == 0 { // every other round it goes before it is synced
				synctest.Wait()
				if err := comes.Health(); err != nil {
					t.Error(err)
				}
			}
			if err := c.Unwatch(ctx, comes); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(len(factory.Health())); got != "1" {
				t.Fatalf("round %d: %s informers are left, want the one of the other source", round, got)
			}
		}
		synctest.Wait()
		stats := factory.Stats()["configmaps"]
		if seen["stays"] != 1 || seen["comes"] < 25 || stats.Lists != 1 || len(stats.Handlers) != 1 {
			t.Errorf("reconciles %v, the other source's informer %+v", seen, stats)
		}
		stop()
		wg.Wait()
	})
}
