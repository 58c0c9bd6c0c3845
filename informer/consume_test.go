package informer

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// consumers returns how many goroutines are in consume.
func consumers() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(stack, ").consume(") {
			n++
		}
	}
	return n
}

// TestConsumerCallsAHandler: a consumer that has nothing else to do calls a handler itself. While the handler blocks,
// another consumer goes on, and in the end there is one again.
func TestConsumerCallsAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		inf := NewSharedInformer[object](s, Options[object]{})
		var called []string
		gate := make(chan struct{})
		must(inf.AddHandler(Handler[object]{OnAdd: func(obj object, _ bool) {
			stack := make([]byte, 1<<16)
			if stack = stack[:runtime.Stack(stack, false)]; !strings.Contains(string(stack), ").consume(") {
				t.Errorf("a goroutine was started for the handler:\n%s", stack)
			}
			called = append(called, obj.Name)
			if obj.Name == "slow" {
				<-gate
			}
		}}, HandlerOptions{}))
		stop := start(t, inf.Run)
		defer stop()
		for _, name := range []string{"b", "slow"} {
			synctest.Wait()
			if n := consumers(); n != 1 {
				t.Errorf("%d consumers before %s", n, name)
			}
			s.put(name)
		}
		synctest.Wait()
		if n := inf.Stats().Queued; n > 0 {
			t.Errorf("%d deltas count as not applied", n)
		}
		for _, name := range []string{"c", "d"} {
			s.put(name)
			synctest.Wait()
			if _, ok := inf.Get("default", name); !ok {
				t.Errorf("the cache has no %s while the handler blocks", name)
			}
		}
		if n := consumers(); n != 2 {
			t.Errorf("%d consumers while the handler blocks", n)
		}
		close(gate)
		synctest.Wait()
		if n := consumers(); n != 1 {
			t.Errorf("%d consumers in the end", n)
		}
		if want := []string{"a", "b", "slow", "c", "d"}; !slices.Equal(called, want) {
			t.Errorf("called for %v, want %v", called, want)
		}
	})
}

// logHook calls itself for every line of a log.
type logHook func()

func (f logHook) Log(...any) { f() }

func (logHook) Helper() {}

// TestResyncWhileAHandlerBlocks: the call of another handler, by whatever goroutine, delays no resync. The handler with
// the resyncs joins before or during that call, or when the consumer has found nothing else to do and is about to make
// it: the consumer then logs that an index function has failed.
func TestResyncWhileAHandlerBlocks(t *testing.T) {
	for _, when := range []string{"before", "just before", "during"} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			inf := NewSharedInformer[object](s, Options[object]{Indexes: map[string]IndexFunc[object]{
				"fails": func(object) ([]string, error) { return nil, errors.New("always") },
			}})
			gate := make(chan struct{})
			must(inf.AddHandler(Handler[object]{OnAdd: func(object, bool) { <-gate }}, HandlerOptions{}))
			resyncs := 0
			join := func() {
				must(inf.AddHandler(Handler[object]{OnUpdate: func(_, _ object) { resyncs++ }},
					HandlerOptions{Resync: 10 * time.Second}))
			}
			log := ktesting.NewLogger(logHook(func() {
				if when == "just before" {
					join()
				}
			}), ktesting.NewConfig(ktesting.Verbosity(0)))
			stop := start(t, func(ctx context.Context) error { return inf.Run(klog.NewContext(ctx, log)) })
			defer stop()
			synctest.Wait()
			if when == "before" {
				join()
			}
			s.put("a")
			synctest.Wait()
			if when == "during" {
				join()
			}
			time.Sleep(35 * time.Second)
			synctest.Wait()
			if resyncs != 3 {
				t.Errorf("joined %s the call: %d resyncs in 35 seconds, want 3", when, resyncs)
			}
			close(gate)
		})
	}
}

// TestHandlerEndsItsGoroutine: a handler that calls runtime.Goexit, as t.Fatal does, ends neither the cache nor the
// other handlers, and the informer can be stopped.
func TestHandlerEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		inf := NewSharedInformer[object](s, Options[object]{})
		must(inf.AddHandler(Handler[object]{OnAdd: func(object, bool) { runtime.Goexit() }}, HandlerOptions{}))
		stop := start(t, inf.Run)
		defer stop()
		synctest.Wait()
		s.put("a")
		synctest.Wait()
		heard := 0
		must(inf.AddHandler(Handler[object]{OnAdd: func(object, bool) { heard++ }}, HandlerOptions{}))
		s.put("b")
		synctest.Wait()
		if _, ok := inf.Get("default", "b"); !ok || heard != 2 {
			t.Errorf("b in the cache: %v; the other handler heard of %d objects", ok, heard)
		}
	})
}
