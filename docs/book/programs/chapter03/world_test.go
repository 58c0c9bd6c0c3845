package chapter03

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/reflector"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
)

const page = "03-reflector"

// latency is how long a request takes.
const latency = 10 * time.Millisecond

// An ask is a request of the follower, and what came of it.
type ask struct {
	at            time.Duration
	verb, what    string
	answer        string // "" while the gate lets it pass
	version       int    // of a watch
	opened, ended time.Duration
}

// A world is a server in a bubble that fails as it is told to.
type world struct {
	*localapi.Test
	t     *testing.T
	began time.Time

	mu   sync.Mutex
	asks []*ask
	of   map[*gate.Request]*ask
	// verdict decides about each list and each opening of a watch.
	verdict func(a *ask) gate.Verdict
	// frame decides about each frame of the watch that a opened.
	frame  func(ctx context.Context, a *ask) gate.Verdict
	writes []moment
	seen   []moment
}

// A moment is when a version was written, or when the follower has seen everything up to it.
type moment struct {
	at      time.Duration
	version int
}

// inWorld runs a scenario in virtual time.
func inWorld(t *testing.T, scenario func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, of: map[*gate.Request]*ask{}, began: time.Now()}
		w.Test = localapi.NewTestWith(t, localapi.Options{Gate: w, Rand: rand.NewPCG(1, 2)})
		w.write()
		w.began = time.Now() // The first Pod is there.
		scenario(w)
	})
}

func (w *world) since() time.Duration { return time.Since(w.began) }

// follows reports whether the request is one of the follower.
func follows(r *gate.Request) bool {
	return r.Resource == "pods" && (r.Verb == "list" || r.Verb == "watch") && r.UserAgent == "follower"
}

// Before implements [gate.Gate].
func (w *world) Before(ctx context.Context, r *gate.Request) gate.Verdict {
	if !follows(r) {
		return gate.Verdict{}
	}
	select {
	case <-time.After(latency):
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a := &ask{at: w.since(), verb: r.Verb, what: words(r)}
	w.asks = append(w.asks, a)
	w.of[r] = a
	v := gate.Verdict{}
	if w.verdict != nil {
		v = w.verdict(a)
	}
	if r.Verb == "watch" && v.Action == gate.Pass {
		a.version, _ = strconv.Atoi(r.Query.Get("resourceVersion"))
		a.opened = w.since()
		context.AfterFunc(ctx, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			a.ended = w.since()
		})
	}
	return v
}

// After implements [gate.Gate].
func (w *world) After(_ context.Context, r *gate.Request, a gate.Answer) gate.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ask := w.of[r]; ask != nil && ask.answer == "" {
		ask.answer = strconv.Itoa(a.Code)
	}
	return gate.Verdict{}
}

// Frame implements [gate.Gate].
func (w *world) Frame(ctx context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
	w.mu.Lock()
	a, frame := w.of[r], w.frame
	w.mu.Unlock()
	if a == nil || frame == nil {
		return gate.Verdict{}
	}
	return frame(ctx, a)
}

// words says what a request asks for.
func words(r *gate.Request) string {
	q := r.Query
	switch {
	case r.Verb == "watch" && q.Get("sendInitialEvents") != "":
		return "stream"
	case r.Verb == "watch":
		return "watch from " + q.Get("resourceVersion")
	case q.Get("limit") == "1":
		return "one object of the newest list"
	case q.Get("resourceVersion") == "":
		return "list, newest"
	case q.Get("resourceVersion") == "0":
		return "list, of any age"
	default:
		return "list, not older than " + q.Get("resourceVersion")
	}
}

// write changes the Pod "web", or creates it.
func (w *world) write() {
	w.t.Helper()
	pods := kubernetes.NewForConfigOrDie(w.RESTConfig()).CoreV1().Pods("default")
	pod, err := pods.Get(w.t.Context(), "web", metav1.GetOptions{})
	if err == nil {
		n, _ := strconv.Atoi(pod.Labels["n"])
		pod.Labels["n"] = strconv.Itoa(n + 1)
		pod, err = pods.Update(w.t.Context(), pod, metav1.UpdateOptions{})
	} else {
		pod, err = pods.Create(w.t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"n": "0"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1.28"}}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	version, _ := strconv.Atoi(pod.ResourceVersion)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, moment{w.since(), version})
}

// A copied is the mirror that the tests look at.
type copied struct {
	mu      sync.Mutex
	names   map[string]bool
	version string
	// seen is told each version, if it is not nil.
	seen func(version string)
}

func (c *copied) replace(pods []*corev1.Pod, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = map[string]bool{}
	for _, pod := range pods {
		c.names[pod.Name] = true
	}
	c.move(version)
}

func (c *copied) apply(event listwatch.Event[*corev1.Pod]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch event.Type {
	case listwatch.Added, listwatch.Modified:
		c.names[event.Object.Name] = true
	case listwatch.Removed:
		delete(c.names, event.Object.Name)
	}
	c.move(event.ResourceVersion)
}

// take applies what a reflector passes on.
func (c *copied) take(d deltafifo.Delta[*corev1.Pod]) {
	switch d.Type {
	case deltafifo.Replace:
		c.replace(d.Objects, d.ResourceVersion)
	case deltafifo.Upsert:
		c.apply(listwatch.Event[*corev1.Pod]{
			Type: listwatch.Modified, Object: d.Object, ResourceVersion: d.ResourceVersion,
		})
	case deltafifo.Delete:
		c.apply(listwatch.Event[*corev1.Pod]{
			Type: listwatch.Removed, Object: d.Object, ResourceVersion: d.ResourceVersion,
		})
	default:
		c.apply(listwatch.Event[*corev1.Pod]{Type: listwatch.Bookmark, ResourceVersion: d.ResourceVersion})
	}
}

func (c *copied) move(version string) {
	c.version = version
	if c.seen != nil {
		c.seen(version)
	}
}

// has returns the names and the position.
func (c *copied) has() (names, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(c.names)), " "), c.version
}

// copy returns an empty copy that tells the world how far it is.
func (w *world) copy() *copied {
	return &copied{seen: func(version string) {
		n, _ := strconv.Atoi(version)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, moment{w.since(), n})
	}}
}

// lister returns what the followers follow the server with. A transport may stand between the two.
func lister(t *testing.T, config *rest.Config, through http.RoundTripper) *listwatch.RESTListerWatcher[*corev1.Pod] {
	t.Helper()
	config = rest.CopyConfig(config)
	config.UserAgent = "follower"
	if through != nil {
		config.Transport = through
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return listwatch.NewRESTListerWatcher[*corev1.Pod](client.CoreV1().RESTClient(), listwatch.RESTOptions{
		Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: "default",
	})
}

// reflect runs a reflector until ctx is done, and has it fill a copy.
func reflect(ctx context.Context, lw listwatch.ListerWatcher[*corev1.Pod], random func() float64, to *copied) {
	log := deltafifo.New[*corev1.Pod]()
	var ended sync.WaitGroup
	ended.Go(func() {
		var batch []deltafifo.Delta[*corev1.Pod]
		for {
			select {
			case <-ctx.Done():
				return
			case <-log.Ready():
			}
			batch = log.Take(batch)
			for _, d := range batch {
				to.take(d)
			}
		}
	})
	_ = reflector.New(lw, log, reflector.Options[*corev1.Pod]{
		Resource: "pods", Namespace: "default", WatchTimeout: watchTime, Backoff: reflector.Backoff{Rand: random},
	}).Run(ctx)
	ended.Wait()
}

// seeded returns numbers in [0,1) that are the same in every run.
func seeded(seed uint64) func() float64 {
	r := rand.New(rand.NewPCG(seed, 0))
	return r.Float64
}

// clock words a time as minutes and seconds.
func clock(d time.Duration) string {
	d = d.Truncate(10 * time.Millisecond)
	text := fmt.Sprintf("%02d:%05.2f", int(d.Minutes()), (d % time.Minute).Seconds())
	return strings.TrimSuffix(text, ".00")
}

// positioned is a copy that moves the position of a follower.
type positioned struct {
	*copied
	position *string
}

func (p positioned) replace(pods []*corev1.Pod, version string) {
	p.copied.replace(pods, version)
	*p.position = version
}

func (p positioned) apply(event listwatch.Event[*corev1.Pod]) {
	p.copied.apply(event)
	*p.position = event.ResourceVersion
}
