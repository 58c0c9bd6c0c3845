package source

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/reconcile"
)

// record is a reconciler that records its calls and then calls a function of the test.
type record struct {
	mu    sync.Mutex
	begin time.Time
	calls []string
	do    func(ctx context.Context, key string)
}

func recorder(do func(ctx context.Context, key string)) *record {
	return &record{begin: time.Now(), do: do}
}

func (r *record) Reconcile(ctx context.Context, key string) (reconcile.Result, error) {
	r.mu.Lock()
	r.calls = append(r.calls, fmt.Sprintf("%s@%s", key, time.Since(r.begin)))
	r.mu.Unlock()
	if r.do != nil {
		r.do(ctx, key)
	}
	return reconcile.Result{}, nil
}

func (r *record) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// start runs a controller in a bubble. end stops it.
func start(t *testing.T, r *record, s ...reconcile.Source[string]) (c *reconcile.Controller[string], end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(quiet(t.Context()))
	c = reconcile.New("test", r, reconcile.Options[string]{})
	for _, s := range s {
		if err := c.Watch(s); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1) // the result of Run
	go func() { done <- c.Run(ctx) }()
	synctest.Wait()
	return c, func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.Logger{}) }

func want(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
