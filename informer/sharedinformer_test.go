package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/reflector"
)

// quiet returns a context that logs nothing.
func quiet(t *testing.T) context.Context { return klog.NewContext(t.Context(), klog.Logger{}) }

// start calls Run, and returns a function that stops it and waits.
func start(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(quiet(t))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := run(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// TestSyncedAfterProcessing: neither the informer nor the handler syncs before the cache is complete, and the handler
// not before its last call has returned.
func TestSyncedAfterProcessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		gate := make(chan struct{})
		inf := NewSharedInformer[object](s, Options[object]{})
		var reg Registration
		reg, _ = inf.AddHandler(Handler[object]{OnAdd: func(object, bool) {
			if !inf.HasSynced() && inf.ResourceVersion() == "" {
				t.Error("told before the cache had it")
			}
			<-gate
			if reg.HasSynced() {
				t.Error("handler has synced before its call returned")
			}
		}}, HandlerOptions{})
		defer start(t, inf.Run)()
		synctest.Wait()
		if !inf.HasSynced() || reg.HasSynced() {
			t.Errorf("informer %v, handler %v", inf.HasSynced(), reg.HasSynced())
		}
		close(gate)
		<-reg.Synced()
	})
}

// TestStop: Run returns at once from every state, waits for a running call, and begins no other.
func TestStop(t *testing.T) {
	for name, prepare := range map[string]func(*server, *SharedInformer[object]){
		"watching":      func(*server, *SharedInformer[object]) {},
		"backing off":   func(s *server, _ *SharedInformer[object]) { s.fail([]error{scriptedError("refused")}, nil) },
		"429 of 1 hour": func(s *server, _ *SharedInformer[object]) { s.fail([]error{errTooManyFor(3600)}, nil) },
		"streaming": func(s *server, inf *SharedInformer[object]) {
			s.endless = true
			src := &inf.sources[0]
			src.reflector = reflector.New(src.lw, inf.fifo,
				reflector.Options[object]{StreamLists: true, Status: src.status})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.put("a")
				s.put("b")
				inf := NewSharedInformer[object](s, Options[object]{})
				prepare(s, inf)
				var told atomic.Int64
				if _, err := inf.AddHandler(
					Handler[object]{OnAdd: func(object, bool) { told.Add(1); time.Sleep(time.Second) }},
					HandlerOptions{},
				); err != nil {
					t.Fatal(err)
				}
				stop := start(t, inf.Run)
				synctest.Wait()
				before := time.Now()
				stop()
				if d := time.Since(before); told.Load() > 1 || d > time.Duration(told.Load())*time.Second {
					t.Errorf("stopped after %v, %d calls", d, told.Load())
				}
				if _, err := inf.AddHandler(Handler[object]{}, HandlerOptions{}); !errors.Is(err, ErrStopped) {
					t.Errorf("AddHandler after the end: %v", err)
				}
				if err := inf.Run(t.Context()); err == nil {
					t.Error("ran twice")
				}
				if !inf.HasSynced() {
					if err := inf.WaitForSync(t.Context()); !errors.Is(err, ErrStopped) {
						t.Errorf("WaitForSync after the end: %v", err)
					}
				}
			})
		})
	}
}

// TestWaitForSyncSaysWhy: the error is not a time-out but something that a person can act on.
func TestWaitForSyncSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.fail([]error{scriptedError("403"), scriptedError("403"), scriptedError("403")}, nil)
		inf := NewSharedInformer[object](s, Options[object]{Resource: "pods"})
		ctx, cancel := context.WithTimeout(quiet(t), 2*time.Second)
		defer cancel()
		if err := inf.WaitForSync(ctx); err == nil ||
			err.Error() != "pods at the cluster scope not synced: context deadline exceeded" {
			t.Errorf("before the start: %v", err)
		}
		defer start(t, inf.Run)()
		ctx, cancel = context.WithTimeout(quiet(t), 2*time.Second)
		defer cancel()
		err := inf.WaitForSync(ctx)
		want := `cannot list pods at the cluster scope: forbidden: User "x" cannot list resource "pods" in API group "" at the cluster scope`
		if err == nil || err.Error() != want || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if err := inf.WaitForSync(t.Context()); err != nil {
			t.Errorf("after it was allowed: %v", err)
		}
	})
}

// TestNamespaces: one cache holds the namespaces of two servers. It syncs when both have, and each has its own
// watermark.
func TestNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newServer(), newServer()
		b.fail([]error{scriptedError("403")}, nil)
		a.putIn("a", "x")
		b.putIn("b", "x")
		b.putIn("b", "y")
		inf := NewSharedInformerOfNamespaces(map[string]listwatch.ListerWatcher[object]{"a": a, "b": b},
			Options[object]{Resource: "pods"})
		defer start(t, inf.Run)()
		synctest.Wait()
		if h := inf.Health(); inf.HasSynced() || h.Namespace != "b" ||
			!strings.Contains(h.Err.Error(), "cannot list pods in namespace b: forbidden") {
			t.Errorf("health %+v", h)
		}
		if err := inf.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, m := len(inf.List("a", nil)), len(inf.List("", nil)); n != 1 || m != 3 {
			t.Errorf("%d in a, %d in all", n, m)
		}
		if rv := inf.ResourceVersion(); rv != "2" {
			t.Errorf("watermark %s, want the lower one", rv)
		}
		for namespace, want := range map[string]string{"a": "2", "b": "3", "c": "", "": "2"} {
			if rv := inf.NamespaceResourceVersion(namespace); rv != want {
				t.Errorf("watermark of namespace %q is %q, want %q", namespace, rv, want)
			}
		}
		// A relist of one namespace does not touch the other.
		a.compact()
		a.cut(errExpired)
		time.Sleep(time.Minute)
		if n := len(inf.List("", nil)); n != 3 {
			t.Errorf("%d objects after a relist of one namespace", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := inf.WaitForResourceVersion(ctx, "b", "3"); err != nil {
			t.Error(err)
		}
		if err := inf.WaitForResourceVersion(ctx, "", "3"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("all namespaces are at 3: %v", err)
		}
		if err := inf.WaitForResourceVersion(ctx, "c", "3"); !errors.Is(err, ErrNotFollowed) {
			t.Errorf("namespace c: %v", err)
		}
	})
}

// TestWaitForResourceVersion: it returns when the cache has the write, not before.
func TestWaitForResourceVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		inf := NewSharedInformer[object](s, Options[object]{})
		defer start(t, inf.Run)()
		if err := inf.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Minute)
			s.put("a")
		}()
		began := time.Now()
		if err := inf.WaitForResourceVersion(t.Context(), "", "2"); err != nil {
			t.Fatal(err)
		}
		if _, found := inf.Get("default", "a"); !found || time.Since(began) != time.Minute {
			t.Errorf("found %v after %v", found, time.Since(began))
		}
	})
}

// TestIndexErrors: if an index function fails or panics for an object, only that object is missing from the index, and
// Health shows it.
//
// Source: in client-go v0.37.2 it is a panic under the cache's lock.
func TestIndexErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("good")
		s.put("bad")
		s.put("ugly")
		inf := NewSharedInformer[object](s, Options[object]{})
		log := ktesting.NewLogger(ktesting.NopTL{},
			ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
		failures := func() int {
			return strings.Count(log.GetSink().(ktesting.Underlier).GetBuffer().String(), "Index function failed")
		}
		defer start(t, func(ctx context.Context) error { return inf.Run(klog.NewContext(ctx, log)) })()
		if err := inf.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		fails := true
		err := inf.AddIndex("name", func(o object) ([]string, error) {
			switch {
			case o.Name == "bad" && fails:
				return nil, errors.New("too bad")
			case o.Name == "ugly" && fails:
				panic("ugh")
			}
			return []string{"all"}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if objs, err := inf.ByIndex("name", "all"); len(objs) != 1 || err != nil {
			t.Errorf("%d objects, %v", len(objs), err)
		}
		if h := inf.Health(); h.Unindexed != 2 || h.IndexErr == nil {
			t.Errorf("health %+v", h)
		}
		if len(inf.List("", nil)) != 3 {
			t.Error("an object is missing from the cache")
		}
		if synctest.Wait(); failures() != 1 {
			t.Errorf("%d lines in the log, want one", failures())
		}
		fails = false
		s.put("bad")
		s.remove("ugly")
		synctest.Wait()
		if objs, _ := inf.ByIndex("name", "all"); len(objs) != 2 || inf.Health().Unindexed != 0 {
			t.Errorf("%d objects, health %+v", len(objs), inf.Health())
		}
		fails = true
		s.put("bad")
		if synctest.Wait(); failures() != 2 {
			t.Errorf("%d lines in the log after the index failed again, want two", failures())
		}
		if err := inf.AddIndex("name", nil); !errors.Is(err, ErrIndexExists) {
			t.Errorf("second index: %v", err)
		}
		if _, err := inf.ByIndex("nome", "all"); !errors.Is(err, ErrNoIndex) {
			t.Errorf("unknown index: %v", err)
		}
	})
}

// TestTransformRunsOnce: a transform runs once per state of an object, also if the list is streamed.
//
// Source: in client-go v0.37.2 it runs twice on that path.
func TestTransformRunsOnce(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.put("a")
			ran := map[string]int{}
			inf := NewSharedInformer[object](s,
				Options[object]{StreamLists: stream, Transform: func(o object) (object, error) {
					ran[o.Name+"@"+o.ResourceVersion]++
					return o, nil
				}})
			defer start(t, inf.Run)()
			synctest.Wait()
			s.put("a")
			synctest.Wait()
			s.remove("a")
			synctest.Wait()
			if len(ran) != 3 || ran["a@2"] != 1 || ran["a@3"] != 1 || ran["a@4"] != 1 {
				t.Errorf("stream %v: ran %v", stream, ran)
			}
		})
	}
}

// TestAllIsOneState: a loop sees the cache as it was when the loop began, whatever is written meanwhile.
func TestAllIsOneState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		for i := range 5 {
			s.put(fmt.Sprint("pod", i))
		}
		inf := NewSharedInformer[object](s, Options[object]{})
		defer start(t, inf.Run)()
		synctest.Wait()
		var seen []string
		for o := range inf.All() {
			if len(seen) == 0 {
				s.put("pod4")
				s.remove("pod3")
				s.put("new")
				synctest.Wait()
			}
			seen = append(seen, o.Name+"@"+o.ResourceVersion)
		}
		slices.Sort(seen)
		if want := []string{"pod0@2", "pod1@3", "pod2@4", "pod3@5", "pod4@6"}; !slices.Equal(seen, want) {
			t.Errorf("saw %v, want %v", seen, want)
		}
		if n := len(inf.List("", nil)); n != 5 {
			t.Errorf("%d objects afterwards", n)
		}
	})
}
