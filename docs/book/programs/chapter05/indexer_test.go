package chapter05

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/localapi"
)

const page = "05-indexer"

type delta = deltafifo.Delta[*corev1.Pod]

// pod returns a state of a pod whose label app is as given.
func pod(name, uid, version, app string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(uid), ResourceVersion: version, Labels: map[string]string{"app": app},
	}}
}

// apply makes a transaction of deltas.
func apply(t *testing.T, x *indexer.Indexer[*corev1.Pod], deltas ...delta) []indexer.Change[*corev1.Pod] {
	t.Helper()
	applied, err := x.Apply(deltas)
	if err != nil {
		t.Fatal(err)
	}
	return applied.Changes
}

func upsert(p *corev1.Pod) delta {
	return delta{Type: deltafifo.Upsert, Object: p, ResourceVersion: p.ResourceVersion}
}

// byApp is the index function of the chapter.
func byApp(p *corev1.Pod) ([]string, error) { return []string{p.Labels["app"]}, nil }

func newIndexer(t *testing.T) *indexer.Indexer[*corev1.Pod] {
	t.Helper()
	x := indexer.New[*corev1.Pod](nil, indexer.Options{})
	if err := x.AddIndex("app", byApp); err != nil {
		t.Fatal(err)
	}
	return x
}

func podNames(pods []*corev1.Pod) string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		if p == nil {
			names = append(names, "nil")
		} else {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// counting counts the objects that a selector is asked about.
type counting struct {
	labels.Selector
	asked *int
}

func (s counting) Matches(l labels.Labels) bool {
	*s.asked++
	return s.Selector.Matches(l)
}

// TestChapter05LookedAt counts the objects that a list looks at.
func TestChapter05LookedAt(t *testing.T) {
	x := indexer.New[*corev1.Pod](nil, indexer.Options{})
	all := make([]*corev1.Pod, 10_000)
	for n := range all {
		app := "other"
		if n < 10 {
			app = "web"
		}
		all[n] = pod(fmt.Sprint("pod-", n), fmt.Sprint("u", n), "1", app)
		all[n].Namespace = fmt.Sprint("ns-", n/500)
	}
	apply(t, x, delta{Type: deltafifo.Replace, Objects: all, ResourceVersion: "1"})
	table := "| 10,000 pods in 20 namespaces | looks at | finds |\n|---|---|---|\n"
	ask := func(text, namespace string) int {
		asked := 0
		found := x.List(namespace, counting{labels.SelectorFromSet(labels.Set{"app": "web"}), &asked})
		if len(found) != 10 {
			t.Errorf("%s: found %d", text, len(found))
		}
		table += fmt.Sprintf("| %s | %d | %d |\n", text, asked, len(found))
		return asked
	}
	everything := ask("all whose `app` is `web`", "")
	ask("the same in one namespace", "ns-0")
	if err := x.AddIndex(indexer.LabelIndex("app"), indexer.ByLabel[*corev1.Pod]("app")); err != nil {
		t.Fatal(err)
	}
	if indexed := ask("all again, with an index by that label", ""); indexed*100 > everything {
		t.Errorf("with an index it looks at %d", indexed)
	}
	book.Block(t, page, table)
}

// A cacheOfPods is a design: ours or another.
type cacheOfPods interface {
	Set(p *corev1.Pod)
	Delete(name string)
	Get(name string) *corev1.Pod
	ByIndex(value string) []*corev1.Pod
}

func (s *store) Get(name string) *corev1.Pod { return s.objects[name] }

// ours is the framework's indexer.
type ours struct {
	*testing.T
	x *indexer.Indexer[*corev1.Pod]
}

func (o ours) Set(p *corev1.Pod) { apply(o.T, o.x, upsert(p)) }

func (o ours) Delete(name string) {
	last := o.Get(name).DeepCopy()
	last.ResourceVersion = "99"
	apply(o.T, o.x, delta{Type: deltafifo.Delete, Object: last, ResourceVersion: "99"})
}

func (o ours) Get(name string) *corev1.Pod {
	p, _ := o.x.Get(name)
	return p
}

func (o ours) ByIndex(value string) []*corev1.Pod {
	found, err := o.x.ByIndex("app", value)
	if err != nil {
		o.Fatal(err)
	}
	return found
}

// theirs is client-go's indexer.
type theirs struct {
	*testing.T
	x cache.Indexer
}

func (c theirs) Set(p *corev1.Pod) {
	if err := c.x.Update(p); err != nil {
		c.Fatal(err)
	}
}

func (c theirs) Delete(name string) {
	if err := c.x.Delete(c.Get(name)); err != nil {
		c.Fatal(err)
	}
}

func (c theirs) Get(name string) *corev1.Pod {
	p, _, err := c.x.GetByKey(name)
	if err != nil {
		c.Fatal(err)
	}
	return p.(*corev1.Pod)
}

func (c theirs) ByIndex(value string) (found []*corev1.Pod) {
	objs, err := c.x.ByIndex("app", value)
	if err != nil {
		c.Fatal(err)
	}
	for _, o := range objs {
		p, _ := o.(*corev1.Pod)
		found = append(found, p)
	}
	return found
}

// careless is the story of a reader that changes what it got from the cache, and then writes it.
func careless(c cacheOfPods) string {
	var b strings.Builder
	say := func(what string) {
		fmt.Fprintf(&b, "%-44s  web: %-4s  db: %s\n", what,
			cmp.Or(podNames(c.ByIndex("web")), "-"), cmp.Or(podNames(c.ByIndex("db")), "-"))
	}
	c.Set(pod("a", "u1", "1", "web"))
	say("the cache has a, its label is app=web")
	got := c.Get("a")
	got.Labels["app"] = "db"
	say("a reader sets app=db in what it got")
	c.Set(pod("a", "u1", "2", "db"))
	say("it writes that, and the server's event comes")
	c.Delete("a")
	say("somebody deletes a")
	return b.String()
}

// TestChapter05Careless: the obvious index never recovers from it, and neither does client-go's.
func TestChapter05Careless(t *testing.T) {
	simple := careless(&store{
		objects: map[string]*corev1.Pod{}, index: map[string]map[string]bool{},
		value: func(p *corev1.Pod) string { return p.Labels["app"] },
	})
	if !strings.Contains(simple, "web: nil") {
		t.Errorf("the obvious index is right in the end:\n%s", simple)
	}
	clientGo := careless(theirs{t, cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		"app": func(obj any) ([]string, error) { return byApp(obj.(*corev1.Pod)) },
	})})
	if clientGo != simple {
		t.Errorf("client-go's indexer does\n%s, the chapter says it does\n%s", clientGo, simple)
	}
	book.Trace(t, page, simple)
}

// TestChapter05Places: ours is right from the next event on.
func TestChapter05Places(t *testing.T) {
	text := careless(ours{t, newIndexer(t)})
	if strings.Contains(text, "nil") {
		t.Error("our index has an object that is gone")
	}
	book.Trace(t, page, text)
}

// TestChapter05Buckets draws what is in a bucket when an object is deleted.
func TestChapter05Buckets(t *testing.T) {
	x := newIndexer(t)
	row := func(what string, lit string) []figure.Cell {
		cells := []figure.Cell{{Text: what}}
		found, err := x.ByIndex("app", "web")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range found {
			class := figure.Plain
			if p.Name == lit {
				class = figure.Lit
			}
			cells = append(cells, figure.Cell{Text: p.Name, Class: class})
		}
		for len(cells) < 6 {
			cells = append(cells, figure.Cell{})
		}
		return cells
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		apply(t, x, upsert(pod(name, "u-"+name, "1", "web")))
	}
	rows := [][]figure.Cell{row("five pods with app=web", "")}
	remove := func(name string) {
		apply(t, x, delta{Type: deltafifo.Delete, Object: pod(name, "u-"+name, "9", "web"), ResourceVersion: "9"})
	}
	remove("b")
	rows = append(rows, row("b is deleted: e takes its place", "e"))
	apply(t, x, upsert(pod("c", "u-c", "10", "db")))
	rows = append(rows, row("c gets app=db: d takes its place", "d"))
	if got := rows[2][2].Text + rows[2][3].Text; got != "ed" {
		t.Errorf("in the middle of the bucket is %q", got)
	}
	book.Figure(t, "05-buckets", figure.Table{
		Title: "What the index has under app=web",
		Desc: "Five pods stand in a slice. When the second is deleted, the last one takes its place, and the slice " +
			"gets shorter. The same happens when the third gets another label.",
		First: 260, Head: []string{"", "0", "1", "2", "3", "4"}, Rows: rows,
	}.Draw())
}

// TestChapter05Apply tries every kind of delta on every state of the cache.
func TestChapter05Apply(t *testing.T) {
	const uid, version = "u1", "5"
	incoming := []struct {
		name string
		d    delta
	}{
		{"a state", upsert(pod("a", uid, version, "web"))},
		{"a deletion", delta{Type: deltafifo.Delete, Object: pod("a", uid, version, "web"), ResourceVersion: version}},
		{"a list with it", delta{
			Type: deltafifo.Replace, Objects: []*corev1.Pod{pod("a", uid, version, "web")}, ResourceVersion: "10",
		}},
		{"a list without it", delta{Type: deltafifo.Replace, ResourceVersion: "10"}},
	}
	before := []struct {
		name string
		has  []*corev1.Pod
	}{
		{"nothing", nil},
		{"the same state", []*corev1.Pod{pod("a", uid, version, "web")}},
		{"an earlier one", []*corev1.Pod{pod("a", uid, "4", "web")}},
		{"a later one", []*corev1.Pod{pod("a", uid, "6", "web")}},
		{"another object", []*corev1.Pod{pod("a", "u0", "3", "web")}},
	}
	table := "| what comes |"
	for _, b := range before {
		table += " the cache has " + b.name + " |"
	}
	table += "\n|---|---|---|---|---|---|\n"
	for _, in := range incoming {
		table += "| " + in.name + " |"
		for _, b := range before {
			x := newIndexer(t)
			apply(t, x, delta{Type: deltafifo.Replace, Objects: b.has, ResourceVersion: "7"})
			var did []string
			for _, c := range apply(t, x, in.d) {
				did = append(did, map[indexer.ChangeType]string{
					indexer.ChangeAdd: "add", indexer.ChangeUpdate: "update", indexer.ChangeDelete: "delete",
				}[c.Type])
			}
			if did == nil {
				did = []string{"nothing"}
			}
			table += " " + strings.Join(did, ", ") + " |"
		}
		table += "\n"
	}
	book.Block(t, page, table)
}

// TestChapter05Copies counts what a read of a thousand pods allocates.
func TestChapter05Copies(t *testing.T) {
	const n = 1000
	x := newIndexer(t)
	all := make([]*corev1.Pod, n)
	for i := range all {
		all[i] = pod(fmt.Sprint("pod-", i), fmt.Sprint("u", i), "1", "web")
		all[i].OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web"}}
		all[i].Spec = corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{},
			}}},
			Containers: []corev1.Container{{
				Name: "web", Image: "web:1", Env: []corev1.EnvVar{{Name: "PORT", Value: "80"}},
				Ports:        []corev1.ContainerPort{{ContainerPort: 80}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")},
				},
			}},
		}
		all[i].Status = corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True"}},
			PodIPs:            []corev1.PodIP{{IP: "10.0.0.1"}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "web", Ready: true}},
		}
	}
	apply(t, x, delta{Type: deltafifo.Replace, Objects: all, ResourceVersion: "1"})
	seen := 0
	look := func(p *corev1.Pod) { seen += len(p.Name) }
	loop := testing.AllocsPerRun(20, func() {
		for p := range x.All() {
			look(p)
		}
	})
	list := testing.AllocsPerRun(20, func() {
		for _, p := range x.List("", nil) {
			look(p)
		}
	})
	copied := testing.AllocsPerRun(20, func() {
		for _, p := range x.List("", nil) {
			look(p.DeepCopy())
		}
	})
	if loop > 5 || list != 1 || copied < 10*n || seen == 0 {
		t.Errorf("a loop allocates %v, a list %v, copies %v", loop, list, copied)
	}
	book.Block(t, page, fmt.Sprintf("| reading %d pods | allocations |\n|---|---|\n"+
		"| `List`, a new slice of the same objects | %v |\n"+
		"| `List`, and a copy of each object | %v |\n", n, list, copied))
}

// TestChapter05Loop: a loop sees the cache as it was when it began.
func TestChapter05Loop(t *testing.T) {
	var b strings.Builder
	x := newIndexer(t)
	for _, name := range []string{"a", "b", "c"} {
		apply(t, x, upsert(pod(name, "u-"+name, "1", "web")))
	}
	seen := 0
	for p := range x.All() {
		fmt.Fprintf(&b, "the loop sees %s\n", p.Name)
		seen++
		if p.Name == "a" {
			apply(t, x,
				delta{Type: deltafifo.Delete, Object: pod("b", "u-b", "5", "web"), ResourceVersion: "5"},
				upsert(pod("d", "u-d", "6", "web")))
			fmt.Fprintf(&b, "-- b is deleted and d is created; a List returns %s\n", podNames(x.List("", nil)))
		}
	}
	if seen != 3 {
		t.Errorf("the loop saw %d", seen)
	}
	book.Trace(t, page, b.String())
}

// TestChapter05Errors: an object that an index function fails on is left out of that index, and counted.
func TestChapter05Errors(t *testing.T) {
	var b strings.Builder
	x := indexer.New[*corev1.Pod](nil, indexer.Options{})
	err := x.AddIndex("node", func(p *corev1.Pod) ([]string, error) {
		if p.Spec.NodeName == "" {
			return nil, errors.New("it has no node")
		}
		return []string{p.Spec.NodeName}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	say := func(what string) {
		found, err := x.ByIndex("node", "n1")
		n, why := x.Unindexed()
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&b, "%s: the cache has %d, the index finds %d, left out %d: %v\n",
			what, x.Len(), len(found), n, why)
	}
	p := pod("a", "u1", "1", "web")
	apply(t, x, upsert(p))
	say("a has no node")
	p = p.DeepCopy()
	p.ResourceVersion, p.Spec.NodeName = "2", "n1"
	apply(t, x, upsert(p))
	say("a is on n1")
	book.Trace(t, page, b.String())
}

// A still is a server on which nothing changes.
type still []*corev1.Pod

func (s still) List(_ context.Context, _ listwatch.ListOptions, yield func(*corev1.Pod) error) (
	listwatch.ListResult, error,
) {
	for _, p := range s {
		if err := yield(p); err != nil {
			return listwatch.ListResult{}, err
		}
	}
	return listwatch.ListResult{ResourceVersion: "7"}, nil
}

func (s still) Watch(context.Context, listwatch.WatchOptions) (listwatch.Watch[*corev1.Pod], error) {
	return quiet{}, nil
}

type quiet struct{}

func (quiet) Next(ctx context.Context) (listwatch.Event[*corev1.Pod], error) {
	<-ctx.Done()
	return listwatch.Event[*corev1.Pod]{}, ctx.Err()
}

func (quiet) Close() error { return nil }

// TestChapter05Detector: with the environment variable, the log names who changed a cached object.
func TestChapter05Detector(t *testing.T) {
	t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", "true")
	var b strings.Builder
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		},
	})))
	defer klog.ClearLogger()
	synctest.Test(t, func(t *testing.T) {
		inf := informer.NewSharedInformer(still{pod("a", "u1", "1", "web")},
			informer.Options[*corev1.Pod]{Resource: "pods"})
		_, err := inf.AddHandler(informer.Handler[*corev1.Pod]{
			OnAdd: func(p *corev1.Pod, _ bool) { p.Labels["app"] = "db" },
		}, informer.HandlerOptions{Name: "careless"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		var running sync.WaitGroup
		running.Go(func() { _ = inf.Run(ctx) })
		synctest.Wait()
		cancel()
		running.Wait()
	})
	if !strings.Contains(b.String(), "careless changed") {
		t.Errorf("the log says %q", b.String())
	}
	book.Trace(t, page, strings.Replace(b.String(), " reason=", "\n  reason=", 1))
}

// TestChapter05Shared: with the lean decoder, objects of a cache share what is equal in them.
func TestChapter05Shared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := localapi.NewTest(t)
		c, err := client.New(api.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 100 {
			p := pod(fmt.Sprint("web-", n), "", "", "web")
			p.Namespace = "default"
			p.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
			if err := c.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		factory, err := informer.NewFactory(api.RESTConfig(), informer.FactoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods, err := informer.For[*corev1.Pod](factory)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		var running sync.WaitGroup
		running.Go(func() { _ = factory.Run(ctx) })
		if err := pods.WaitForSync(ctx); err != nil {
			t.Error(err)
		}
		last, _ := pods.Get("default", "web-99")
		last.Labels["app"] = "db"
		changed := 0
		for p := range pods.All() {
			if p.Labels["app"] == "db" {
				changed++
			}
		}
		if changed < 90 {
			t.Errorf("%d of 100 pods have another label now: the chapter says that nearly all have", changed)
		}
		cancel()
		running.Wait()
	})
}
