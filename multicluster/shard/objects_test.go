package shard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/multicluster/shard"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// sharer is a process that works on its share of the ConfigMaps of one cluster: it writes its name into them, again and
// again.
type sharer struct {
	name    string
	owner   *shard.Owner
	weather *weather
	stop    context.CancelFunc
	done    chan error

	mu sync.Mutex
	// cached is the number of objects that each part's informer shows, and stats the number that its cache holds.
	cached map[int]int
	stats  map[int]int64
}

// without makes a server behave as one that does not support shards.
func without(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if q := r.URL.Query(); q.Has("shardSelector") {
			q.Del("shardSelector")
			r = r.Clone(r.Context())
			r.URL.RawQuery = q.Encode()
		}
		return next.RoundTrip(r)
	})
}

func share(t *testing.T, server *localapi.Server, name string, sharded bool) *sharer {
	t.Helper()
	s := &sharer{
		name: name, weather: newWeather(3), done: make(chan error, 1), cached: map[int]int{},
		stats: map[int]int64{},
	}
	config := server.RESTConfig()
	config.UserAgent = name
	config.Wrap(s.weather.over)
	if !sharded {
		config.Wrap(without)
	}
	var err error
	if s.owner, err = shard.New(config, shard.Options{Identity: name}); err != nil {
		t.Fatal(err)
	}
	objects, err := shard.NewObjects(s.owner, shard.ObjectsOptions{Name: "configmaps", Parts: 8})
	if err != nil {
		t.Fatal(err)
	}
	factory, err := informer.NewFactory(config, informer.FactoryOptions{Namespaces: []string{"default"}})
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(leader.Fence)
	client := kubernetes.NewForConfigOrDie(config)
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	s.stop = stop
	go func() {
		caches, end := context.WithCancel(context.WithoutCancel(ctx))
		var informers sync.WaitGroup
		informers.Go(func() { _ = factory.Run(caches) })
		err := s.owner.RunAround(ctx, func(ctx context.Context) error {
			return objects.Run(ctx,
				func(ctx context.Context, p *shard.Part) error { return s.work(ctx, p, factory, client) })
		})
		end()
		informers.Wait()
		s.done <- err
	}()
	return s
}

// work is a controller for one part.
func (s *sharer) work(ctx context.Context, p *shard.Part, f *informer.Factory, client kubernetes.Interface) error {
	maps, release, err := shard.PartInformer[*corev1.ConfigMap](ctx, f, p, informer.InformerOptions{})
	if err != nil {
		return err
	}
	defer release()
	c := reconcile.New(fmt.Sprintf("%s-%d", s.name, p.Index),
		reconcile.Func[reconcile.Request](func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			s.mu.Lock()
			s.cached[p.Index], s.stats[p.Index] = len(maps.List("", nil)), maps.Stats().Objects
			s.mu.Unlock()
			if _, found := maps.Get(r.Namespace, r.Name); !found {
				return reconcile.Result{}, nil
			}
			patch := fmt.Appendf(nil, `{"data":{"by":%q}}`, s.name)
			_, err := client.CoreV1().ConfigMaps(r.Namespace).Patch(ctx, r.Name, types.MergePatchType, patch,
				metav1.PatchOptions{})
			return reconcile.Result{RequeueAfter: 4 * time.Second}, err
		}), reconcile.Options[reconcile.Request]{})
	if err := c.Watch(source.Kind(maps, handler.EnqueueObject[*corev1.ConfigMap]())); err != nil {
		return err
	}
	return c.Run(ctx)
}

func (s *sharer) end(t *testing.T) {
	t.Helper()
	s.stop()
	if err := <-s.done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// partsOf returns how many parts each replica holds, according to the leases.
func partsOf(w *world) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	shares := map[string]int{}
	for name, history := range w.held {
		if strings.HasPrefix(name, "configmaps/") {
			shares[history[len(history)-1].holder]++
		}
	}
	return shares
}

// Two replicas share the objects of one cluster, on a server that supports shards and on one that does not. At any
// time, only the holder of its part works on an object. When one replica is partitioned, the other takes its parts;
// when it is back, the parts move back.
func TestObjectsAreShared(t *testing.T) {
	for _, sharded := range []bool{true, false} {
		t.Run(fmt.Sprintf("server has shards: %v", sharded), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { shareObjects(t, sharded) })
		})
	}
}

func shareObjects(t *testing.T, sharded bool) {
	const objects = 24
	w := newWorld(t, 0)
	partOf := map[string]int{} // by name
	for i := range objects {
		cm, err := w.admin.CoreV1().ConfigMaps("default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m-%d", i)}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		partOf[cm.Name] = shard.PartOf(cm, 8)
	}
	begin := time.Now()
	a, b := share(t, w.local, "a", sharded), share(t, w.local, "b", sharded)
	time.Sleep(20 * time.Second)
	before := partsOf(w)
	if before["a"]+before["b"] != 8 || before["a"] == 0 || before["b"] == 0 {
		t.Errorf("parts: %v", before)
	}
	a.mu.Lock()
	for part, cached := range a.cached {
		if held := a.stats[part]; sharded == (held == objects) || cached == objects {
			t.Errorf("part %d shows %d objects, and its cache holds %d of %d", part, cached, held, objects)
		}
	}
	a.mu.Unlock()
	heal := a.weather.partition()
	time.Sleep(18 * time.Second)
	if got := partsOf(w); got["b"] != 8 {
		t.Errorf("parts when a is cut off: %v", got)
	}
	heal()
	time.Sleep(30 * time.Second)
	if got := partsOf(w); got["a"] != before["a"] || got["b"] != before["b"] {
		t.Errorf("parts when a is back: %v, want %v", got, before)
	}
	a.end(t)
	time.Sleep(6 * time.Second)
	b.end(t)
	judgeObjects(t, w, partOf, begin)
}

// judgeObjects compares the writes that the server accepted with the holders of the parts.
func judgeObjects(t *testing.T, w *world, partOf map[string]int, begin time.Time) {
	t.Helper()
	writes, last, gap := 0, map[string]time.Time{}, time.Duration(0)
	for _, e := range w.local.Audit().Writes() {
		if e.Verb != "patch" || e.Resource != "configmaps" {
			continue
		}
		writes++
		part := fmt.Sprintf("configmaps/%d-of-8", partOf[e.Name])
		if holder := w.holderAt(part, e.Time); holder != e.UserAgent {
			t.Errorf("a write by %s to %s at %v, whose part is held by %q: %s", e.UserAgent, e.Name, e.Time.Sub(begin),
				holder, w.history(part, begin))
		}
		if !last[e.Name].IsZero() {
			gap = max(gap, e.Time.Sub(last[e.Name]))
		}
		last[e.Name] = e.Time
	}
	t.Logf("%d writes to %d objects, the longest gap %v", writes, len(last), gap)
	if len(last) != len(partOf) || gap > bound+4*time.Second {
		t.Errorf("%d objects were written to, the longest gap %v", len(last), gap)
	}
}

// If replicas split objects in different ways, both would write to some. The later one gets an error.
func TestReplicasMustSplitAlike(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, 0)
		run := func(parts int) error {
			owner, err := shard.New(w.local.RESTConfig(), shard.Options{Identity: fmt.Sprint("r", parts)})
			if err != nil {
				t.Fatal(err)
			}
			objects, err := shard.NewObjects(owner, shard.ObjectsOptions{Name: "pods", Parts: parts})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(klog.NewContext(t.Context(), klog.Logger{}), 10*time.Second)
			defer cancel()
			return owner.RunAround(ctx, func(ctx context.Context) error {
				return objects.Run(ctx, func(ctx context.Context, _ *shard.Part) error { <-ctx.Done(); return nil })
			})
		}
		if err := run(4); err != nil {
			t.Error(err)
		}
		if err := run(8); err == nil ||
			!strings.Contains(err.Error(), "split into 4 parts by object.metadata.uid, not 8 parts") {
			t.Errorf("another split: %v", err)
		}
	})
}

// Work that fails is started again. Work that does not return keeps its part until the lease has expired.
func TestWorkOfAPart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, 0)
		owner, err := shard.New(w.local.RESTConfig(), shard.Options{Identity: "a"})
		if err != nil {
			t.Fatal(err)
		}
		objects, err := shard.NewObjects(owner,
			shard.ObjectsOptions{Name: "configmaps", Parts: 1, DrainTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
		begun, deaf, done := 0, make(chan struct{}), make(chan error, 1)
		var part *shard.Part
		go func() {
			done <- owner.RunAround(ctx, func(ctx context.Context) error {
				return objects.Run(ctx, func(_ context.Context, p *shard.Part) error {
					if begun++; begun < 3 {
						return errors.New("not yet")
					}
					part = p
					<-deaf
					return nil
				})
			})
		}()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if begun != 3 || part.Check() != nil {
			t.Errorf("begun %d times, check %v", begun, part.Check())
		}
		stop()
		time.Sleep(4 * time.Second)
		if part.Check() == nil || partsOf(w)["a"] != 1 {
			t.Errorf("check %v; %v", part.Check(), partsOf(w))
		}
		close(deaf)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if s := owner.Stats(); s.Stuck != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}
