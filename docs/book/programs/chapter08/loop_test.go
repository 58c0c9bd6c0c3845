package chapter08

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/reconcile"
)

// A diary notes what happens, and when.
type diary struct {
	began time.Time
	mu    sync.Mutex
	text  strings.Builder
}

func (d *diary) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(&d.text, "%8v  %s\n", time.Since(d.began), fmt.Sprintf(format, args...))
}

// run runs a controller in a bubble until script returns. It returns what Run did.
func run(t *testing.T, r reconcile.Func[string], o reconcile.Options[string],
	script func(d *diary, c *reconcile.Controller[string]),
) {
	t.Helper()
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	defer stop()
	c := reconcile.New("web", r, o)
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()
	synctest.Wait()
	script(&diary{began: time.Now()}, c)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// panics is what a programmer's mistake looks like.
func panics() { panic("assignment to entry in nil map") }

// TestChapter08Outcomes has the reconciler answer in every way, three times each.
func TestChapter08Outcomes(t *testing.T) {
	failure := errors.New("refused")
	table := "| the reconciler's first three answers | the key runs after |\n|---|---|\n"
	for _, answer := range []struct {
		code string
		give func() (reconcile.Result, error)
	}{
		{"`Result{}, nil`", func() (reconcile.Result, error) { return reconcile.Result{}, nil }},
		{"`Result{RequeueAfter: time.Minute}, nil`", func() (reconcile.Result, error) {
			return reconcile.Result{RequeueAfter: time.Minute}, nil
		}},
		{"`Result{Requeue: true}, nil`", func() (reconcile.Result, error) {
			return reconcile.Result{Requeue: true}, nil
		}},
		{"`Result{}, err`", func() (reconcile.Result, error) { return reconcile.Result{}, failure }},
		{"`Result{}, reconcile.Terminal(err)`", func() (reconcile.Result, error) {
			return reconcile.Result{}, reconcile.Terminal(failure)
		}},
		{"`Result{}, client.ErrStale`", func() (reconcile.Result, error) {
			return reconcile.Result{}, client.ErrStale
		}},
		{"a panic", func() (reconcile.Result, error) { panics(); return reconcile.Result{}, nil }},
	} {
		var runs []string
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			answers := func(context.Context, string) (reconcile.Result, error) {
				runs = append(runs, time.Since(began).String())
				if len(runs) > 3 {
					return reconcile.Result{}, nil
				}
				return answer.give()
			}
			run(t, answers, reconcile.Options[string]{}, func(_ *diary, c *reconcile.Controller[string]) {
				c.Enqueue("a")
				time.Sleep(time.Hour)
			})
		})
		table += fmt.Sprintf("| %s | %s |\n", answer.code, strings.Join(runs, ", "))
	}
	book.Block(t, page, table)
}

// TestChapter08Event shows an event that comes while a key waits for its retry.
func TestChapter08Event(t *testing.T) {
	var trace string
	synctest.Test(t, func(t *testing.T) {
		replicas, runs := "three", 0
		var d *diary
		reconcileKey := func(context.Context, string) (reconcile.Result, error) {
			runs++
			if replicas != "3" {
				if runs >= 10 {
					d.note("run %d fails: %q is not a number", runs, replicas)
				}
				return reconcile.Result{}, errors.New("not a number")
			}
			d.note("run %d: done", runs)
			return reconcile.Result{}, nil
		}
		run(t, reconcileKey, reconcile.Options[string]{}, func(own *diary, c *reconcile.Controller[string]) {
			d = own
			c.Enqueue("a")
			time.Sleep(7 * time.Second)
			synctest.Wait()
			d.note("the user writes 3; the watch event adds the key")
			replicas = "3"
			c.Enqueue("a")
			synctest.Wait()
			time.Sleep(time.Hour)
			synctest.Wait()
			d.note("%d run(s) in all", runs)
			trace = d.text.String()
		})
	})
	book.Trace(t, page, trace)
}

// TestChapter08Panic shows a key that panics between two that do not.
func TestChapter08Panic(t *testing.T) {
	var trace string
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		var d *diary
		reconcileKey := func(_ context.Context, key string) (reconcile.Result, error) {
			d.note("run %s", key)
			if key == "b" {
				if attempts++; attempts < 3 {
					panics()
				}
			}
			return reconcile.Result{}, nil
		}
		run(t, reconcileKey, reconcile.Options[string]{}, func(own *diary, c *reconcile.Controller[string]) {
			d = own
			for _, key := range []string{"a", "b", "c"} {
				c.Enqueue(key)
			}
			time.Sleep(time.Second)
			d.note("panics: %d, reconciles: %d", c.Stats().Panics, c.Stats().Syncs)
			trace = d.text.String()
		})
	})
	book.Trace(t, page, trace)
}

// TestChapter08Health shows what the controller says of keys that are not well.
func TestChapter08Health(t *testing.T) {
	var trace string
	synctest.Test(t, func(t *testing.T) {
		reconcileKey := func(ctx context.Context, key string) (reconcile.Result, error) {
			switch key {
			case "shop/hangs":
				<-ctx.Done()
			case "shop/fails":
				return reconcile.Result{}, errBroken
			}
			return reconcile.Result{}, nil
		}
		o := reconcile.Options[string]{Workers: 2, DrainTimeout: time.Second}
		run(t, reconcileKey, o, func(d *diary, c *reconcile.Controller[string]) {
			for _, key := range []string{"shop/hangs", "shop/fails", "shop/fine"} {
				c.Enqueue(key)
			}
			for _, wait := range []time.Duration{5 * time.Minute, 10 * time.Minute} {
				time.Sleep(wait)
				d.note("%s", strings.ReplaceAll(fmt.Sprint(c.Health()), "\n", "\n          "))
			}
			trace = d.text.String()
		})
	})
	book.Trace(t, page, trace)
}

// TestChapter08Forbidden counts the log lines of 100 keys that all need a permission that is missing.
func TestChapter08Forbidden(t *testing.T) {
	var text string
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
		refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "settings", errors.New(
			`User "web" cannot update resource "configmaps" in API group "" in the namespace "shop"`))
		runs := 0
		reconcileKey := func(context.Context, string) (reconcile.Result, error) {
			runs++
			return reconcile.Result{}, refused
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
		c := reconcile.New("web", reconcile.Func[string](reconcileKey), reconcile.Options[string]{})
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		for n := range 100 {
			c.Enqueue(fmt.Sprintf("shop/%d", n))
		}
		time.Sleep(50 * time.Second)
		lines := 0
		for _, line := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
			if line.Type == ktesting.LogError {
				lines++
			}
		}
		text = fmt.Sprintf("100 keys were refused again and again for 50 seconds\n"+
			"%d line(s) of the log say so\nHealth: %v", lines, c.Health())
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if runs < 600 { // How many there are depends on which key asks first.
			t.Errorf("%d reconciles", runs)
		}
	})
	book.Trace(t, page, text)
}

// TestChapter08Stop shows a stop while one key runs and another waits.
func TestChapter08Stop(t *testing.T) {
	var trace string
	synctest.Test(t, func(t *testing.T) {
		d := &diary{began: time.Now()}
		reconcileKey := func(ctx context.Context, key string) (reconcile.Result, error) {
			d.note("run %s begins", key)
			select {
			case <-time.After(3 * time.Second):
				d.note("run %s writes; its context is alive: %v", key, ctx.Err() == nil)
			case <-ctx.Done():
				d.note("run %s is cancelled", key)
			}
			return reconcile.Result{}, nil
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		c := reconcile.New("web", reconcile.Func[string](reconcileKey), reconcile.Options[string]{})
		c.Enqueue("a")
		c.Enqueue("b")
		ended := make(chan error)
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(time.Second)
		d.note("the stop signal")
		stop()
		err := <-ended
		d.note("Run returns %v; left undone: %s", err, strings.Join(c.Left(10), ", "))
		trace = d.text.String()
	})
	book.Trace(t, page, trace)
}
