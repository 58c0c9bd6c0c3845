package informer

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// The tests of this file do one thing to both sides, and pin down how differently they answer. Each has a line in
// docs/divergence.md.

// differ runs f on both sides and compares what it returns.
func differ(t *testing.T, f func(t *testing.T, s side) []string, clientgo, ours []string) {
	t.Helper()
	for _, c := range []struct {
		side side
		want []string
	}{{upstream, clientgo}, {flyball, ours}} {
		t.Run(c.side.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { equal(t, c.side.name, f(t, c.side), c.want) })
		})
	}
}

func pods(s side, src cache.ListerWatcher) cache.SharedIndexInformer {
	return s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{})
}

// panics reports whether f panics.
func panics(f func()) (line []string) {
	defer func() {
		if recover() != nil {
			line = []string{"panic"}
		}
	}()
	f()
	return nil
}

// TestDivergenceRelist: lists of unchanged objects. client-go's behaviour depends on resync periods and the time since
// the last resync.
func TestDivergenceRelist(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		src := newSource(false, "one", "two")
		inf := pods(s, src)
		r, _ := handled(t, inf)
		defer running(t, inf)()
		src.put("one") // Told by a watch, while two was listed.
		r.take()
		src.gap(func() { src.putLocked("three") })
		time.Sleep(2 * time.Minute)
		return sorted(r.take())
	}, []string{"add three false", "update one 4->4", "update two 3->3"}, []string{"add three false"})
}

// TestDivergenceUnknownDeleted: the deletion of an object that the cache never held.
func TestDivergenceUnknownDeleted(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		src := newSource(false)
		inf := pods(s, src)
		r, _ := handled(t, inf)
		defer running(t, inf)()
		r.take()
		src.inject(watch.Deleted, pod("a", "two", "6"))
		return r.take()
	}, []string{"delete two 6"}, nil)
}

// TestDivergenceStoreVersion: of the last write, or the highest.
func TestDivergenceStoreVersion(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		x := s.newIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		must(t, x.Add(pod("a", "one", "9")))
		must(t, x.Add(pod("a", "two", "7")))
		written := x.LastStoreSyncResourceVersion()
		x.Bookmark("8")
		marked := x.LastStoreSyncResourceVersion()
		if err := x.(cache.TransactionStore).Transaction(
			cache.Transaction{Type: cache.TransactionTypeUpdate, Object: pod("a", "one", "20")},
			cache.Transaction{Type: cache.TransactionTypeUpdate, Object: pod("a", "two", "15")},
		); err != nil {
			t.Error(err)
		}
		return []string{written, marked, x.LastStoreSyncResourceVersion()}
	}, []string{"7", "8", "15"}, []string{"9", "9", "20"})
}

// TestDivergenceWrittenVersion: a program writes into the store of an informer that runs.
func TestDivergenceWrittenVersion(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		inf := pods(s, newSource(false, "one"))
		defer running(t, inf)()
		synctest.Wait()
		must(t, inf.GetStore().Update(pod("a", "one", "50")))
		return []string{inf.GetStore().LastStoreSyncResourceVersion()}
	}, []string{"50"}, []string{"2"})
}

// TestDivergenceIndexFails: an index function that returns an error.
func TestDivergenceIndexFails(t *testing.T) {
	differ(t, func(t *testing.T, s side) (lines []string) {
		x := s.newIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{"bad": func(any) ([]string, error) { return nil, errors.New("bad") }})
		return append(panics(func() { must(t, x.Add(pod("a", "one", ""))) }), x.ListIndexFuncValues("bad")...)
	}, []string{"panic"}, nil)
}

// TestDivergenceIndexers: those that GetIndexers returned, and those of a store made with none.
func TestDivergenceIndexers(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		x := s.newIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		x.GetIndexers()["label"] = byLabel
		_, err := x.ByIndex("label", "red")
		none := s.newIndexer(cache.MetaNamespaceKeyFunc, nil)
		return append(panics(func() { must(t, none.AddIndexers(cache.Indexers{"label": byLabel})) }), fmt.Sprint(err))
	}, []string{"panic", "<nil>"}, []string{"Index with name label does not exist"})
}

// TestDivergenceTransform: how often the transform is called for one state, and what happens to a state for which it
// failed once.
func TestDivergenceTransform(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		src := newSource(true, "one")
		inf := pods(s, src)
		calls, failed := &recorder{}, false
		must(t, inf.SetTransform(func(obj any) (any, error) {
			calls.note("transform %s", obj.(*corev1.Pod).Name)
			if obj.(*corev1.Pod).Name == "two" && !failed {
				failed = true
				return nil, errors.New("once")
			}
			return obj, nil
		}))
		defer running(t, inf)()
		listed := calls.take()
		src.put("two")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		return append(listed, sorted(inf.GetStore().ListKeys())...)
	}, []string{"transform one", "transform one", "a/one"}, []string{"transform one", "a/one", "a/two"})
}

// TestDivergenceWrongType: a watch brings something else.
func TestDivergenceWrongType(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		src := newSource(false, "one")
		inf := pods(s, src)
		defer running(t, inf)()
		synctest.Wait()
		src.asked()
		src.inject(watch.Added, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "one", ResourceVersion: "3"}})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		return src.asked()
	}, nil, []string{`list "2"`, `watch "2"`})
}

// TestDivergencePanicSynced: with ReallyCrash off a handler panics over the initial list.
func TestDivergencePanicSynced(t *testing.T) {
	handlers := utilruntime.PanicHandlers
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = true, handlers }()
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	differ(t, func(t *testing.T, s side) []string {
		inf := pods(s, newSource(false, "one"))
		handle, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("add") }})
		must(t, err)
		defer running(t, inf)()
		time.Sleep(time.Hour)
		return []string{fmt.Sprint("synced ", handle.HasSynced())}
	}, []string{"synced false"}, []string{"synced true"})
}

// TestDivergenceOneHandler: a slow handler of NewInformerWithOptions.
func TestDivergenceOneHandler(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		src, gate := newSource(false, "one"), make(chan struct{})
		store, c := s.newOne(cache.InformerOptions{
			ListerWatcher: src, ObjectType: &corev1.Pod{},
			Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-gate }},
		})
		stop := running(t, c)
		synctest.Wait()
		src.put("two")
		synctest.Wait()
		keys := sorted(store.ListKeys())
		close(gate)
		stop()
		return keys
	}, []string{"a/one"}, []string{"a/one", "a/two"})
}

// endless is a source whose streamed lists never say that they are complete.
type endless struct{ *source }

func (e endless) Watch(o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return watch.NewFakeWithChanSize(1, false), nil
	}
	return e.source.Watch(o)
}

// TestDivergenceEndlessStream: the server never ends a streamed list.
func TestDivergenceEndlessStream(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		inf := pods(s, endless{newSource(true, "one")})
		defer running(t, inf)()
		time.Sleep(time.Hour)
		synctest.Wait()
		return inf.GetStore().ListKeys()
	}, []string{}, []string{"a/one"})
}

// TestDivergenceStopWhileRefused: stopped while the server cannot be reached.
func TestDivergenceStopWhileRefused(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		src := newSource(true)
		src.refuseWith(&url.Error{Op: "Get", URL: "https://server", Err: syscall.ECONNREFUSED})
		stop := running(t, pods(s, src))
		time.Sleep(20 * time.Second)
		before := time.Now()
		stop()
		return []string{fmt.Sprint("at once: ", time.Since(before) == 0)}
	}, []string{"at once: false"}, []string{"at once: true"})
}

// TestDivergenceBrokenConnection: the requests once the server can be reached again.
func TestDivergenceBrokenConnection(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		src := newSource(false, "one")
		defer running(t, pods(s, src))()
		time.Sleep(time.Minute)
		src.refuseWith(&url.Error{Op: "Get", URL: "https://server", Err: syscall.ECONNREFUSED})
		src.cut()
		synctest.Wait()
		src.refuseWith(nil)
		src.asked()
		time.Sleep(time.Minute)
		return src.asked()
	}, []string{`watch "2"`}, []string{`list ""`, `watch "2"`})
}

// TestDivergenceEarlyEnd: the requests after the server has ended a watch early but without an error, and the contents
// of the cache if etcd was restored meanwhile.
func TestDivergenceEarlyEnd(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		src := newSource(false, "one")
		inf := pods(s, src)
		defer running(t, inf)()
		synctest.Wait()
		backup := src.current("one")
		src.put("one")
		time.Sleep(time.Minute)
		_ = src.asked()
		src.mu.Lock()
		src.rv, src.history, src.pods = 2, nil, map[string]*corev1.Pod{"one": backup}
		src.mu.Unlock()
		src.cut()
		time.Sleep(time.Minute)
		return append(src.asked(), "one@"+version(t, inf, "one"))
	}, []string{`watch "3"`, "one@3"}, []string{`list ""`, `list ""`, `watch "2"`, "one@2"})
}

// hangsUp is a server, or what stands before one, that ends every watch before it answers.
type hangsUp struct{ *source }

func (h hangsUp) Watch(o metav1.ListOptions) (watch.Interface, error) {
	_, _ = h.source.Watch(o)
	return nil, &url.Error{Op: "Get", URL: "https://server", Err: io.EOF}
}

// TestDivergenceHangingUp: how many lists an hour of that costs.
func TestDivergenceHangingUp(t *testing.T) {
	unhurried(t)
	differ(t, func(t *testing.T, s side) []string {
		src := hangsUp{newSource(false, "one")}
		defer running(t, pods(s, src))()
		time.Sleep(time.Hour)
		synctest.Wait()
		asked := src.asked()
		if n := counted(asked, "watch"); n < 30 || n > 300 {
			t.Errorf("%d watches", n)
		}
		return []string{fmt.Sprint("lists of all: ", counted(asked, `list "2"`) > 0)}
	}, []string{"lists of all: true"}, []string{"lists of all: false"})
}

// TestDivergenceRemoval: which of the earlier events a removed handler has received.
func TestDivergenceRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, gate := newSource(false, "one"), make(chan struct{})
		inf := pods(upstream, src)
		told := 0
		handle, err := inf.AddEventHandler(
			cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-gate }, UpdateFunc: func(_, _ any) { told++ }},
		)
		must(t, err)
		defer running(t, inf)()
		for range 50 {
			src.put("one")
		}
		synctest.Wait()
		go func() { must(t, inf.RemoveEventHandler(handle)) }()
		synctest.Wait()
		close(gate)
		synctest.Wait()
		if told > 10 {
			t.Errorf("%d updates were delivered", told)
		}
	})
}

// TestDivergenceResyncPeriods: client-go rounds up to multiples of the shortest one asked for before the start.
func TestDivergenceResyncPeriods(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		inf := s.newInformer(newSource(false, "one"), &corev1.Pod{}, 20*time.Second, cache.Indexers{})
		odd, late := &recorder{}, &recorder{}
		_, err := inf.AddEventHandlerWithResyncPeriod(odd, 30*time.Second)
		must(t, err)
		defer running(t, inf)()
		odd.take()
		_, err = inf.AddEventHandlerWithResyncPeriod(late, 5*time.Second)
		must(t, err)
		late.take()
		time.Sleep(61 * time.Second)
		return []string{fmt.Sprint(len(odd.take()), " of 30 s, ", len(late.take()), " of 5 s")}
	}, []string{"1 of 30 s, 3 of 5 s"}, []string{"2 of 30 s, 12 of 5 s"})
}

// TestDivergenceHealth: why an informer has not synced.
func TestDivergenceHealth(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		src := newSource(false)
		src.refuseWith(errors.New("no such luck"))
		inf := pods(s, src)
		defer running(t, inf)()
		synctest.Wait()
		if h, ok := inf.(healthy); ok {
			return []string{h.Health().Err.Error()}
		}
		return nil
	}, nil, []string{"cannot list *v1.Pod at the cluster scope: no such luck"})
}
