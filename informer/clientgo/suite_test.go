package clientgo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	peer "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/klog/v2"
)

// side is one of the two implementations that the suite runs on: client-go's is the oracle for the assertions, ours is what they are
// about. Where the two are meant to differ there is a test of its own, in divergence_test.go.
type side struct {
	newIndexer  func(KeyFunc, Indexers) Indexer
	newInformer func(ListerWatcher, runtime.Object, time.Duration, Indexers) SharedIndexInformer
	newOne      func(InformerOptions) (Store, Controller)
}

var sides = map[string]side{
	"flyball": {
		func(key KeyFunc, indexers Indexers) Indexer { return NewIndexer(key, indexers) },
		NewSharedIndexInformer, NewInformerWithOptions,
	},
	"clientgo": {
		func(key KeyFunc, indexers Indexers) Indexer { return peer.NewIndexer(key, indexers) },
		peer.NewSharedIndexInformer, peer.NewInformerWithOptions,
	},
}

func both(t *testing.T, f func(t *testing.T, s side)) {
	for name, s := range sides {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, s) })
		})
	}
}

func pod(namespace, name, rv string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: rv, UID: types.UID(namespace + name)}}
	for _, l := range labels {
		metav1.SetMetaDataLabel(&p.ObjectMeta, l, "yes")
	}
	return p
}

// byLabel is an index with one value for each label.
func byLabel(obj any) ([]string, error) {
	var values []string
	for l := range obj.(*corev1.Pod).Labels {
		values = append(values, l)
	}
	return values, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// names returns the sorted names of objects.
func names(objs []any) []string {
	all := []string{}
	for _, o := range objs {
		all = append(all, o.(metav1.Object).GetName())
	}
	slices.Sort(all)
	return all
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestIndexer(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(DeletionHandlingMetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc, "label": byLabel})
		if l := x.List(); l == nil || len(l) != 0 {
			t.Errorf("empty List is %#v", l)
		}
		must(t, x.Add(pod("a", "one", "1", "red", "big")))
		must(t, x.Add(pod("b", "two", "2", "red")))
		must(t, x.Add(pod("b", "three", "3", "blue")))
		must(t, x.Update(pod("b", "three", "4", "blue", "red")))
		equal(t, "List", names(x.List()), []string{"one", "three", "two"})
		keys := x.ListKeys()
		slices.Sort(keys)
		equal(t, "ListKeys", keys, []string{"a/one", "b/three", "b/two"})
		red, err := x.ByIndex("label", "red")
		must(t, err)
		equal(t, "ByIndex", names(red), []string{"one", "three", "two"})
		redKeys, err := x.IndexKeys("label", "red")
		must(t, err)
		equal(t, "IndexKeys are sorted", redKeys, []string{"a/one", "b/three", "b/two"})
		like, err := x.Index("label", pod("", "", "", "big", "blue"))
		must(t, err)
		equal(t, "Index of several values", names(like), []string{"one", "three"})
		inB, err := x.Index(NamespaceIndex, &metav1.ObjectMeta{Namespace: "b"})
		must(t, err)
		equal(t, "Index by an ObjectMeta", names(inB), []string{"three", "two"})
		values := x.ListIndexFuncValues("label")
		slices.Sort(values)
		equal(t, "ListIndexFuncValues", values, []string{"big", "blue", "red"})

		got, exists, err := x.Get(pod("b", "three", ""))
		if !exists || err != nil || got.(*corev1.Pod).ResourceVersion != "4" {
			t.Errorf("Get: %v %v %v", got, exists, err)
		}
		if got, exists, err := x.GetByKey("c/none"); got != nil || exists || err != nil {
			t.Errorf("GetByKey of nothing: %v %v %v", got, exists, err)
		}
		must(t, x.Delete(DeletedFinalStateUnknown{Key: "a/one"}))
		must(t, x.Delete(pod("b", "two", "9")))
		must(t, x.Delete(pod("b", "two", "9")))
		if v := x.ListIndexFuncValues("label"); slices.Contains(v, "big") {
			t.Errorf("a value without objects: %v", v)
		}
		if big, err := x.ByIndex("label", "big"); err != nil || len(big) != 0 {
			t.Errorf("deleted object in index: %v %v", big, err)
		}
		must(t, x.Replace([]any{pod("c", "four", "20", "red")}, "21"))
		equal(t, "after Replace", names(x.List()), []string{"four"})
		red, _ = x.ByIndex("label", "red")
		equal(t, "index after Replace", names(red), []string{"four"})
		must(t, x.Resync())
	})
}

// TestIndexerTakesWhatItIsGiven: a store is not an informer. What is written is kept, whatever its version.
func TestIndexerTakesWhatItIsGiven(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(MetaNamespaceKeyFunc, Indexers{})
		for _, rv := range []string{"5", "5", "3", ""} {
			p := pod("a", "one", rv)
			must(t, x.Add(p))
			if got, _, _ := x.GetByKey("a/one"); got != any(p) {
				t.Errorf("version %q was not taken", rv)
			}
		}
		other := pod("a", "one", "1")
		other.UID = "other"
		must(t, x.Update(other))
		if got, _, _ := x.GetByKey("a/one"); got != any(other) {
			t.Error("another UID was not taken")
		}
	})
}

func TestIndexerErrors(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(MetaNamespaceKeyFunc, Indexers{"label": byLabel})
		for what, err := range map[string]error{
			"Add": x.Add("no metadata"), "Update": x.Update("no metadata"), "Delete": x.Delete("no metadata"),
			"Replace": x.Replace([]any{"no metadata"}, ""),
		} {
			if key := (KeyError{}); !errors.As(err, &key) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, _, err := x.Get("no metadata"); err == nil {
			t.Error("Get of what has no key")
		}
		_, err := x.ByIndex("none", "x")
		_, err2 := x.IndexKeys("none", "x")
		_, err3 := x.Index("none", pod("a", "b", ""))
		for _, err := range []error{err, err2, err3} {
			if err == nil || err.Error() != "Index with name none does not exist" {
				t.Errorf("unknown index: %v", err)
			}
		}
		if v := x.ListIndexFuncValues("none"); len(v) != 0 {
			t.Errorf("values of an unknown index: %v", v)
		}
	})
}

func TestAddIndexersToAFilledStore(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(MetaNamespaceKeyFunc, Indexers{})
		must(t, x.Add(pod("a", "one", "1", "red")))
		must(t, x.AddIndexers(Indexers{"label": byLabel}))
		red, err := x.ByIndex("label", "red")
		must(t, err)
		equal(t, "new index", names(red), []string{"one"})
		if x.AddIndexers(Indexers{"label": byLabel}) == nil {
			t.Error("a name was taken twice")
		}
		if len(x.GetIndexers()) != 1 || x.GetIndexers()["label"] == nil {
			t.Errorf("GetIndexers: %v", x.GetIndexers())
		}
	})
}

// TestStoreOfAnything: objects need no metadata, only a key.
func TestStoreOfAnything(t *testing.T) {
	type thing struct{ id, value string }
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(func(obj any) (string, error) { return obj.(thing).id, nil }, Indexers{
			"value": func(obj any) ([]string, error) { return []string{obj.(thing).value}, nil },
		})
		must(t, x.Add(thing{"a", "1"}))
		must(t, x.Add(thing{"b", "1"}))
		must(t, x.Update(thing{"b", "2"}))
		objs, err := x.ByIndex("value", "1")
		must(t, err)
		if len(objs) != 1 || objs[0] != (thing{"a", "1"}) {
			t.Errorf("ByIndex: %v", objs)
		}
	})
}

// recorder is a handler that writes down what it is told.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// take returns what was noted, once all is quiet.
func (r *recorder) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines
	r.lines = nil
	slices.Sort(l)
	return l
}

func (r *recorder) OnAdd(obj any, initial bool) { r.note("add %s %v", obj.(*corev1.Pod).Name, initial) }
func (r *recorder) OnUpdate(old, obj any) {
	r.note("update %s %s->%s", obj.(*corev1.Pod).Name, old.(*corev1.Pod).ResourceVersion, obj.(*corev1.Pod).ResourceVersion)
}

func (r *recorder) OnDelete(obj any) {
	if d, ok := obj.(DeletedFinalStateUnknown); ok {
		r.note("tombstone %s %s", d.Key, d.Obj.(*corev1.Pod).Name)
		return
	}
	r.note("delete %s", obj.(*corev1.Pod).Name)
}

// running starts an informer, and returns what stops it and waits.
func running(t *testing.T, inf interface{ RunWithContext(context.Context) }) (stop func()) {
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	var wg sync.WaitGroup
	wg.Go(func() { inf.RunWithContext(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

func TestInformer(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		source := fcache.NewFakeControllerSource()
		defer source.Shutdown()
		source.Add(pod("a", "one", ""))
		inf := s.newInformer(source, &corev1.Pod{}, 0, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
		first := &recorder{}
		handle, err := inf.AddEventHandler(first)
		must(t, err)
		if inf.HasSynced() || handle.HasSynced() || IsDone(inf.HasSyncedChecker()) || inf.IsStopped() {
			t.Error("synced or stopped before it runs")
		}
		stop := running(t, inf)
		equal(t, "initial", first.take(), []string{"add one true"})
		if !inf.HasSynced() || !handle.HasSynced() || !IsDone(inf.HasSyncedChecker()) || !IsDone(handle.HasSyncedChecker()) || !inf.GetController().HasSynced() {
			t.Error("not synced")
		}
		source.Add(pod("b", "two", ""))
		equal(t, "add", first.take(), []string{"add two false"})
		source.Modify(pod("a", "one", ""))
		equal(t, "update", first.take(), []string{"update one 1->3"})
		if rv := inf.LastSyncResourceVersion(); rv != "3" {
			t.Errorf("resource version %s", rv)
		}

		late := &recorder{}
		lateHandle, err := inf.AddEventHandler(late)
		must(t, err)
		equal(t, "late handler", late.take(), []string{"add one true", "add two true"})
		source.Delete(pod("a", "one", ""))
		equal(t, "delete", first.take(), []string{"delete one"})
		equal(t, "delete", late.take(), []string{"delete one"})
		must(t, inf.RemoveEventHandler(lateHandle))
		must(t, inf.RemoveEventHandler(lateHandle))
		source.Add(pod("a", "three", ""))
		equal(t, "removed handler", late.take(), nil)
		equal(t, "the other", first.take(), []string{"add three false"})
		must(t, ShutDownEventHandler(inf, handle))

		must(t, inf.AddIndexers(Indexers{"label": byLabel}))
		var listed []string
		must(t, ListAllByNamespace(inf.GetIndexer(), "b", labels.Everything(), func(obj any) { listed = append(listed, obj.(*corev1.Pod).Name) }))
		equal(t, "lister", listed, []string{"two"})
		equal(t, "store", names(inf.GetStore().List()), []string{"three", "two"})
		if inf.SetTransform(func(o any) (any, error) { return o, nil }) == nil || inf.SetWatchErrorHandler(nil) == nil {
			t.Error("set after the start")
		}
		stop()
		if !inf.IsStopped() {
			t.Error("not stopped")
		}
		if _, err := inf.AddEventHandler(first); err == nil {
			t.Error("handler added after the end")
		}
	})
}

// TestInformerTombstone: a deletion that was not seen is told with the last known state.
func TestInformerTombstone(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		source := fcache.NewFakeControllerSource()
		defer source.Shutdown()
		source.Add(pod("a", "one", ""))
		source.Add(pod("a", "two", ""))
		inf := s.newInformer(source, &corev1.Pod{}, 0, Indexers{})
		r := &recorder{}
		_, err := inf.AddEventHandler(r)
		must(t, err)
		defer running(t, inf)()
		r.take()
		source.DeleteDropWatch(pod("a", "one", ""))
		source.ResetWatch() // The history is gone: a list is needed.
		time.Sleep(5 * time.Minute)
		got := slices.DeleteFunc(r.take(), func(l string) bool { return l == "update two 2->2" }) // Only client-go: see divergence_test.go.
		equal(t, "tombstone", got, []string{"tombstone a/one one"})
	})
}

func TestInformerResync(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		source := fcache.NewFakeControllerSource()
		defer source.Shutdown()
		source.Add(pod("a", "one", ""))
		inf := s.newInformer(source, &corev1.Pod{}, 10*time.Second, Indexers{})
		often, never := &recorder{}, &recorder{}
		_, err := inf.AddEventHandler(often)
		must(t, err)
		_, err = inf.AddEventHandlerWithResyncPeriod(never, 0)
		must(t, err)
		defer running(t, inf)()
		often.take()
		never.take()
		time.Sleep(25 * time.Second)
		equal(t, "resync", often.take(), []string{"update one 1->1", "update one 1->1"})
		equal(t, "no resync", never.take(), nil)
	})
}

func TestInformerTransform(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		source := fcache.NewFakeControllerSource()
		defer source.Shutdown()
		source.Add(pod("a", "one", ""))
		inf := s.newInformer(source, &corev1.Pod{}, 0, Indexers{})
		must(t, inf.SetTransform(func(obj any) (any, error) {
			p := obj.(*corev1.Pod).DeepCopy()
			p.Annotations = map[string]string{"seen": "yes"}
			return p, nil
		}))
		defer running(t, inf)()
		synctest.Wait()
		source.Add(pod("a", "two", ""))
		synctest.Wait()
		for _, obj := range inf.GetStore().List() {
			if obj.(*corev1.Pod).Annotations["seen"] != "yes" {
				t.Errorf("%s was not transformed", obj.(*corev1.Pod).Name)
			}
		}
	})
}

// TestInformerWatchErrorHandler: it is told why a list failed.
func TestInformerWatchErrorHandler(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		refused := errors.New("refused")
		lw := &peer.ListWatch{
			ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { return nil, refused },
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return nil, refused },
		}
		inf := s.newInformer(lw, &corev1.Pod{}, 0, Indexers{})
		told := make(chan error, 100)
		must(t, inf.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *peer.Reflector, err error) {
			if r == nil || r.Name() == "" {
				t.Error("the reflector has no name")
			}
			told <- err
		}))
		defer running(t, inf)()
		synctest.Wait()
		if err := <-told; !errors.Is(err, refused) {
			t.Errorf("told %v", err)
		}
	})
}

// TestIndexerOfAnInformerIsFilledByHand, as unit tests of controllers do, without ever running it.
func TestIndexerOfAnInformerIsFilledByHand(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		source := fcache.NewFakeControllerSource()
		defer source.Shutdown()
		inf := s.newInformer(source, &corev1.Pod{}, 0, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
		must(t, inf.GetIndexer().Add(pod("a", "one", "")))
		must(t, inf.GetStore().Add(pod("a", "two", "")))
		p := pod("a", "two", "")
		p.Spec.NodeName = "n"
		must(t, inf.GetIndexer().Update(p))
		objs, err := inf.GetIndexer().ByIndex(NamespaceIndex, "a")
		must(t, err)
		equal(t, "by namespace", names(objs), []string{"one", "two"})
		got, _, _ := inf.GetStore().GetByKey("a/two")
		if got.(*corev1.Pod).Spec.NodeName != "n" {
			t.Error("not updated")
		}
		must(t, inf.GetStore().Delete(p))
		equal(t, "deleted", names(inf.GetStore().List()), []string{"one"})
	})
}

func TestNewInformerWithOptions(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		source := fcache.NewFakeControllerSource()
		defer source.Shutdown()
		source.Add(pod("a", "one", "", "red"))
		r := &recorder{}
		store, c := s.newOne(InformerOptions{ListerWatcher: source, ObjectType: &corev1.Pod{}, Handler: r, Indexers: Indexers{"label": byLabel}})
		if c.HasSynced() {
			t.Error("synced before it runs")
		}
		defer running(t, c)()
		equal(t, "told", r.take(), []string{"add one true"})
		if !c.HasSynced() || !IsDone(c.HasSyncedChecker()) {
			t.Error("not synced")
		}
		red, err := store.(Indexer).ByIndex("label", "red")
		must(t, err)
		equal(t, "index", names(red), []string{"one"})
		source.Delete(pod("a", "one", ""))
		equal(t, "told", r.take(), []string{"delete one"})
	})
}
