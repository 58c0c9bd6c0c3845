package informer

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// What handlers are promised. Source: k8s.io/client-go/tools/cache v0.37.2, the comment of SharedInformer, and
// shared_informer.go.

func TestHandler(t *testing.T) {
	eachWay(t, func(t *testing.T, s side, streams bool) {
		src := newSource(streams, "one")
		inf := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{})
		first, handle := handled(t, inf)
		if handle.HasSynced() || cache.IsDone(handle.HasSyncedChecker()) {
			t.Error("synced before it runs")
		}
		stop := running(t, inf)
		equal(t, "initial", first.take(), []string{"add one true"})
		if !handle.HasSynced() || !cache.IsDone(handle.HasSyncedChecker()) {
			t.Error("not synced")
		}
		src.put("two")
		src.put("one")
		src.put("one")
		src.remove("two")
		src.put("two")
		equal(t, "changes", first.take(), []string{
			"add two false", "update one 2->4", "update one 4->5", "delete two 6", "add two false",
		})
		late, lateHandle := handled(t, inf)
		equal(t, "late handler", sorted(late.take()), []string{"add one true", "add two true"})
		if !lateHandle.HasSynced() {
			t.Error("late handler not synced")
		}
		src.remove("one")
		equal(t, "the one", first.take(), []string{"delete one 8"})
		equal(t, "the other", late.take(), []string{"delete one 8"})
		stop()
		src.put("three")
		equal(t, "after the end", first.take(), nil)
		if _, err := inf.AddEventHandler(first); err == nil {
			t.Error("added after the end")
		}
		if _, err := inf.AddEventHandlerWithOptions(first, cache.HandlerOptions{}); err == nil {
			t.Error("added after the end")
		}
		must(t, inf.RemoveEventHandler(handle))
	})
}

// TestHandlerGaps: changes that the watch missed.
func TestHandlerGaps(t *testing.T) {
	eachWay(t, func(t *testing.T, s side, streams bool) {
		src := newSource(streams, "changed", "gone", "recreated", "same")
		inf := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{})
		r, _ := handled(t, inf)
		defer running(t, inf)()
		r.take()
		src.gap(func() {
			src.putLocked("changed")
			src.removeLocked("gone")
			src.removeLocked("recreated")
			src.putLocked("recreated")
			src.putLocked("new")
		})
		time.Sleep(2 * time.Minute)
		// The repetition is only client-go's: see TestDivergenceRelist.
		told := slices.DeleteFunc(sorted(r.take()), func(line string) bool { return line == "update same 5->5" })
		equal(t, "told", told, []string{
			"add new false", "tombstone a/gone 3", "update changed 2->6", "update recreated 4->9 of another UID",
		})
	})
}

// TestHandlerOfTheCache: the cache and its indexes hold a state before the handler hears of it.
func TestHandlerOfTheCache(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		src := newSource(false)
		src.put("one", "red")
		inf := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{"label": byLabel})
		r := &recorder{}
		look := func(what string) {
			red, err := inf.GetIndexer().ByIndex("label", "red")
			r.note("%s: %d of %d, %v", what, len(red), len(inf.GetStore().ListKeys()), err)
		}
		_, err := inf.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(any, bool) { look("add") },
			UpdateFunc: func(any, any) { look("update") },
			DeleteFunc: func(any) { look("delete") },
		})
		must(t, err)
		defer running(t, inf)()
		synctest.Wait()
		src.put("one")
		synctest.Wait()
		src.remove("one")
		equal(t, "seen", r.take(), []string{"add: 1 of 1, <nil>", "update: 0 of 1, <nil>", "delete: 0 of 0, <nil>"})
	})
}

// TestHandlerGetsEveryUpdate, however slow it is, and holds up neither the cache nor others.
func TestHandlerGetsEveryUpdate(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		src, gate := newSource(false), make(chan struct{})
		inf := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{})
		var updates int
		slow, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { <-gate },
			UpdateFunc: func(any, any) { updates++ },
		})
		must(t, err)
		r, quick := handled(t, inf)
		src.put("one")
		stop := running(t, inf)
		synctest.Wait()
		if slow.HasSynced() || !quick.HasSynced() || !inf.HasSynced() {
			t.Errorf("synced: slow %v, quick %v, informer %v", slow.HasSynced(), quick.HasSynced(), inf.HasSynced())
		}
		for range 5000 {
			src.put("one")
		}
		synctest.Wait()
		if n := len(r.take()); n != 5001 || inf.LastSyncResourceVersion() != "5002" {
			t.Errorf("quick was told %d times, cache at %s", n, inf.LastSyncResourceVersion())
		}
		close(gate)
		synctest.Wait()
		stop()
		if updates != 5000 {
			t.Errorf("slow was told of %d updates", updates)
		}
	})
}

// TestHandlerRemoval: at once and idempotent; ShutDownEventHandler waits for the call that is running.
func TestHandlerRemoval(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		src := newSource(false, "one")
		inf, other := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{}),
			s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{})
		r, handle := handled(t, inf)
		gate, entered := make(chan struct{}), make(chan struct{})
		slow, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { close(entered); <-gate }})
		must(t, err)
		defer running(t, inf)()
		<-entered
		r.take()
		must(t, other.RemoveEventHandler(handle))
		src.put("two")
		equal(t, "removed from another informer", r.take(), []string{"add two false"})
		must(t, inf.RemoveEventHandler(handle))
		must(t, inf.RemoveEventHandler(handle))
		src.put("three")
		equal(t, "removed", r.take(), nil)
		if inf.RemoveEventHandler(nil) == nil {
			t.Error("nil is no handle")
		}
		shut := make(chan error, 1)
		go func() { shut <- cache.ShutDownEventHandler(inf, slow) }()
		synctest.Wait()
		select {
		case <-shut:
			t.Error("shut down while a call is running")
		default:
		}
		close(gate)
		must(t, <-shut)
	})
}

// TestHandlerResync: each handler at its own interval, and none where it asked for none, or the informer was made
// without.
func TestHandlerResync(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		src := newSource(false, "one")
		inf := s.newInformer(src, &corev1.Pod{}, 10*time.Second, cache.Indexers{})
		without := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{})
		often, _ := handled(t, inf)
		seldom, never, nothing := &recorder{}, &recorder{}, &recorder{}
		period := 20 * time.Second
		_, err := inf.AddEventHandlerWithOptions(seldom, cache.HandlerOptions{ResyncPeriod: &period})
		must(t, err)
		_, err = inf.AddEventHandlerWithResyncPeriod(never, 0)
		must(t, err)
		_, err = without.AddEventHandlerWithResyncPeriod(nothing, 10*time.Second)
		must(t, err)
		defer running(t, inf)()
		defer running(t, without)()
		for _, r := range []*recorder{often, seldom, never, nothing} {
			r.take()
		}
		time.Sleep(45 * time.Second)
		same := "update one 2->2"
		equal(t, "often", often.take(), []string{same, same, same, same})
		equal(t, "seldom", seldom.take(), []string{same, same})
		equal(t, "never", never.take(), nil)
		equal(t, "without", nothing.take(), nil)
	})
}

// TestHandlerOfOddClients: clients made for tests have no resource versions, or do not change them, or count
// backwards. Each event counts, in the order it comes.
func TestHandlerOfOddClients(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		src := newSource(false, "one", "two", "three", "four")
		inf := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{})
		r, _ := handled(t, inf)
		defer running(t, inf)()
		r.take()
		send := func(kind watch.EventType, rv string) {
			p := pod("a", "one", rv)
			p.UID = "u1"
			src.inject(kind, p)
		}
		send(watch.Modified, "2")
		send(watch.Modified, "")
		send(watch.Modified, "")
		send(watch.Modified, "9")
		send(watch.Modified, "3")
		send(watch.Added, "4")
		send(watch.Deleted, "1")
		send(watch.Modified, "1")
		equal(t, "told", r.take(), []string{
			"update one 2->2", "update one 2->", "update one ->", "update one ->9", "update one 9->3",
			"update one 3->4",
			"delete one 1", "add one false",
		})
		equal(t, "store", names(inf.GetStore().List()), []string{"four", "one", "three", "two"})
	})
}

// TestHandlerPanics: with ReallyCrash off, the panic is handed to the program's panic handlers, and the next
// notification comes.
func TestHandlerPanics(t *testing.T) {
	handlers := utilruntime.PanicHandlers
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = true, handlers }()
	utilruntime.ReallyCrash = false
	both(t, func(t *testing.T, s side) {
		var panics []any // Appended to by the handler's goroutine.
		utilruntime.PanicHandlers = []func(context.Context, any){
			func(_ context.Context, p any) { panics = append(panics, p) },
		}
		src := newSource(false, "one")
		inf := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{})
		r := &recorder{}
		_, err := inf.AddEventHandler(cache.FilteringResourceEventHandler{
			FilterFunc: func(obj any) bool {
				if obj.(*corev1.Pod).ResourceVersion == "3" {
					panic("three")
				}
				return true
			},
			Handler: r,
		})
		must(t, err)
		defer running(t, inf)()
		synctest.Wait()
		src.put("two")
		src.put("three")
		time.Sleep(time.Minute)
		equal(t, "told", r.take(), []string{"add one true", "add three false"})
		equal(t, "panics", panics, []any{"three"})
	})
}

// TestHandlerAdapters: a filter that an update crosses, and handlers with types.
func TestHandlerAdapters(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		src := newSource(false)
		src.put("one")
		inf := s.newWith(src, &corev1.Pod{}, cache.SharedIndexInformerOptions{Indexers: cache.Indexers{}})
		red := &recorder{}
		_, err := inf.AddEventHandler(cache.FilteringResourceEventHandler{
			FilterFunc: func(obj any) bool {
				p, ok := obj.(*corev1.Pod) // A tombstone is not.
				return ok && p.Labels["red"] != ""
			},
			Handler: red,
		})
		must(t, err)
		typed, typedTold := cache.NewTypedSharedIndexInformer[*corev1.Pod](inf), &recorder{}
		_, err = typed.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[*corev1.Pod]{
			AddFunc: func(p *corev1.Pod, initial bool) { typedTold.OnAdd(p, initial) },
			DeleteFunc: func(d cache.DeletedObject[*corev1.Pod]) {
				typedTold.note("gone %s %v", d.GetName(), d.FinalStateUnknown != nil)
			},
		})
		must(t, err)
		must(t, typed.AddTypedIndexers(cache.TypedIndexers[*corev1.Pod]{
			"label": func(p *corev1.Pod) ([]string, error) { return byLabel(p) },
		}))
		defer running(t, inf)()
		red.take()
		src.put("one", "red")
		src.put("one", "red")
		src.put("one")
		equal(t, "filtered", red.take(), []string{"add one false", "update one 3->4", "delete one 4"})
		src.put("one", "blue")
		synctest.Wait()
		blue, err := typed.GetTypedIndexer().ByTypedIndex("label", "blue")
		must(t, err)
		if len(blue) != 1 || blue[0].Name != "one" {
			t.Errorf("by index: %v", blue)
		}
		src.gap(func() { src.removeLocked("one") })
		time.Sleep(2 * time.Minute)
		equal(t, "typed", typedTold.take(), []string{"add one true", "gone one true"})
	})
}

// TestHandlersComeAndGo adds and removes handlers while the server is busy: no handler gets a state twice, or before an
// earlier one. The race detector asserts, too.
func TestHandlersComeAndGo(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		src := newSource(false, "one")
		inf := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{})
		stop := running(t, inf)
		synctest.Wait()
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 500 {
				src.put("one")
			}
		})
		for range 4 {
			wg.Go(func() {
				for range 25 {
					h := &ascending{t: t}
					handle, err := inf.AddEventHandler(h)
					must(t, err)
					must(t, cache.ShutDownEventHandler(inf, handle))
				}
			})
		}
		wg.Wait()
		stop()
	})
}

// ascending is a handler that complains of states that do not follow the one before.
type ascending struct {
	t    *testing.T
	last *corev1.Pod
}

func (a *ascending) OnAdd(obj any, initial bool) {
	if a.last != nil || !initial {
		a.t.Errorf("added again, initial %v", initial)
	}
	a.last = obj.(*corev1.Pod)
}

func (a *ascending) OnUpdate(old, obj any) {
	if a.last != old {
		a.t.Errorf("updated from another state than the last")
	}
	a.last = obj.(*corev1.Pod)
}

func (a *ascending) OnDelete(any) {}
