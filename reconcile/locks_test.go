package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// asking is a key whose String method calls its controller. That would block for ever if a lock were held.
type asking struct{ c *engine[asking] }

func (a asking) String() string {
	a.c.Stats()
	a.c.queue.Len()
	return "a"
}

// asks is a source, a rate limiter and a reconciler. Each of its methods calls the controller.
type asks struct {
	c    *engine[asking]
	fail bool
}

func (a *asks) Run(ctx context.Context, out *Sink[asking], synced func()) error {
	out.For(workqueue.Cause{Source: a.String()}).Add(asking{a.c})
	synced()
	<-ctx.Done()
	return nil
}

func (a *asks) String() string { return asking{a.c}.String() }
func (a *asks) Repeats() bool  { return a.String() != "" }
func (a *asks) Health() error  { return errors.New(a.String()) }

func (a *asks) When(key asking) time.Duration { return time.Duration(len(key.String())) * time.Second }
func (a *asks) Forget(key asking)             { _ = key.String() }
func (a *asks) NumRequeues(key asking) int    { return len(key.String()) }

func (a *asks) Reconcile(ctx context.Context, key asking) (Result, error) {
	if key.c.Add(key, workqueue.AddOptions{}); a.fail {
		select {
		case <-time.After(time.Hour):
		case <-ctx.Done():
		}
		return Result{}, errors.Join(ctx.Err(), errors.New(key.String()))
	}
	return Result{}, nil
}

// TestNothingIsCalledUnderALock: all code of a user may call the controller.
func TestNothingIsCalledUnderALock(t *testing.T) {
	for name, fail := range map[string]bool{"it fails and hangs": true, "it triggers itself": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &asks{fail: fail}
				a.c = newEngine("test", a,
					Options[asking]{RateLimiter: a, HungAfter: time.Minute, FailingAfter: time.Minute, Workers: 2})
				ctx, stop := context.WithCancel(quiet(t.Context()))
				warm, done := make(chan error, 1), make(chan error, 1)
				if err := a.c.Watch(a); err != nil {
					t.Fatal(err)
				}
				go func() { warm <- a.c.Warmup(ctx) }()
				synctest.Wait()
				_ = a.c.Health()
				go func() { done <- a.c.Run(ctx) }()
				time.Sleep(2*time.Hour + time.Minute)
				_, _, _ = a.c.Health(), a.c.InFlight(), a.c.Left(3)
				_, _ = a.c.Work(), a.c.SelfTriggered()
				a.c.ForgetFunc(func(key asking) bool { return key.String() != "" })
				_ = a.c.Hung()
				stop()
				<-warm
				if err := <-done; (err == nil) != fail {
					t.Errorf("Run: %v", err)
				}
				if err := a.c.Watch(a); !errors.Is(err, ErrStopped) {
					t.Errorf("Watch: %v", err)
				}
			})
		})
	}
}
