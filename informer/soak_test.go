package informer

import (
	"context"
	"maps"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSoak: many objects, much change, watches cut every second, history compacted every ten, ten handlers of which one is
// stuck. In the end the cache is what the server has, so is what each handler was told, memory was bounded all along, and (the bubble sees to that) no
// goroutine is left.
//
// FLYBALL_SOAK=1 makes it 100k objects, 5,000 changes a second and ten minutes of virtual time.
func TestSoak(t *testing.T) {
	objects, perSecond, seconds := 2_000, 1_000, 30
	if os.Getenv("FLYBALL_SOAK") != "" {
		objects, perSecond, seconds = 100_000, 5_000, 600
	}
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		for i := range objects {
			s.put("pod" + strconv.Itoa(i))
		}
		inf := NewSharedInformer[object](s, Options[object]{Resource: "pods"})
		gate := make(chan struct{})
		var told [10]soakHandler
		for i := range told {
			told[i].objects = map[string]string{}
			if i == 0 {
				told[i].gate = gate
			}
			must(inf.AddHandler(told[i].handler(), HandlerOptions{}))
		}
		stop := start(t, inf.Run)
		defer stop()
		must(0, inf.WaitForSync(t.Context()))
		runtime.GC()
		var first, last runtime.MemStats
		runtime.ReadMemStats(&first)
		for second := range seconds {
			for i := range perSecond {
				n := (second*perSecond + i) * 7919 % objects
				name := "pod" + strconv.Itoa(n)
				if n%11 == 0 && s.has(name) {
					s.remove(name)
				} else {
					s.put(name)
				}
				if i%500 == 0 {
					synctest.Wait()
				}
			}
			s.cut(scriptedError([]string{"eof", "reset", "500", "410"}[second%4]))
			if second%10 == 9 {
				s.compact()
			}
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		stuck := inf.Stats().Handlers[0]
		// The batch that it is stuck in, at most two calls for each object, and what may wait unmerged.
		if stuck.Pending > int64(3*objects+maxBehind) {
			t.Errorf("the stuck handler has %d notifications pending for %d objects", stuck.Pending, objects)
		}
		runtime.GC()
		runtime.ReadMemStats(&last)
		if grown := last.HeapAlloc / (first.HeapAlloc + 1); grown > 3 {
			t.Errorf("heap grew from %d to %d bytes", first.HeapAlloc, last.HeapAlloc)
		}
		close(gate)
		synctest.Wait()
		want := map[string]string{}
		for key, o := range s.objects {
			want[key] = o.ResourceVersion
		}
		got := map[string]string{}
		for o := range inf.All() {
			got[Key(o)] = o.ResourceVersion
		}
		if !maps.Equal(got, want) {
			t.Errorf("the cache has %d objects, the server %d, or they differ", len(got), len(want))
		}
		for i := range told {
			if told[i].wrong.Load() > 0 || !maps.Equal(told[i].objects, want) {
				t.Errorf("handler %d: %d calls out of order, %d objects of %d", i, told[i].wrong.Load(), len(told[i].objects), len(want))
			}
		}
		t.Logf("%+v", inf.Stats())
	})
}

// soakHandler keeps the version of each object that it was told.
type soakHandler struct {
	objects map[string]string
	wrong   atomic.Int64
	gate    chan struct{} // Closed when the handler may go on; nil when it is never held.
}

func (h *soakHandler) handler() Handler[object] {
	return Handler[object]{
		OnAdd: func(o object, _ bool) {
			if h.gate != nil {
				<-h.gate
			}
			if _, known := h.objects[Key(o)]; known {
				h.wrong.Add(1)
			}
			h.objects[Key(o)] = o.ResourceVersion
		},
		OnUpdate: func(old, o object) {
			if h.objects[Key(o)] != old.ResourceVersion || !older(old.ResourceVersion, o.ResourceVersion) {
				h.wrong.Add(1)
			}
			h.objects[Key(o)] = o.ResourceVersion
		},
		OnDelete: func(d Deleted[object]) {
			if _, known := h.objects[d.Key]; !known {
				h.wrong.Add(1)
			}
			delete(h.objects, d.Key)
		},
	}
}

// TestIdleInformerIsSmall: an idle informer with a handler has two goroutines and little memory.
func TestIdleInformerIsSmall(t *testing.T) {
	const informers = 200
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	for range informers {
		s := &idleSource{}
		inf := NewSharedInformer[object](s, Options[object]{})
		must(inf.AddHandler(Handler[object]{}, HandlerOptions{}))
		stop := start(t, inf.Run)
		must(0, inf.WaitForSync(t.Context()))
		defer stop()
	}
	for range 1_000_000 { // The handlers have been told all there is; their goroutines end.
		if runtime.NumGoroutine() <= goroutines+3*informers {
			break
		}
		runtime.Gosched()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	perInformer := (runtime.NumGoroutine() - goroutines) / informers
	memory := (after.HeapAlloc + after.StackInuse - before.HeapAlloc - before.StackInuse) / informers
	t.Logf("%d goroutines (one is the test's), %d bytes of heap and stack", perInformer, memory)
	if perInformer > 3 {
		t.Errorf("%d goroutines for each informer", perInformer)
	}
}

// idleSource lists nothing and never says more.
type idleSource struct{}

func (*idleSource) List(context.Context, ListOptions, func(object) error) (ListResult, error) {
	return ListResult{ResourceVersion: "1"}, nil
}

func (*idleSource) Watch(context.Context, WatchOptions) (Watch[object], error) {
	return &idleSource{}, nil
}

func (*idleSource) Next(ctx context.Context) (Event[object], error) {
	<-ctx.Done()
	return Event[object]{}, ctx.Err()
}

func (*idleSource) Close() error { return nil }
