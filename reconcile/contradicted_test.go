package reconcile

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/reconcile/internal/contradiction"
	"github.com/flyball-dev/flyball/writes"
)

var errIdle = errors.New("not found, every second time")

// TestContradictedKeysAreHeldBack: the server refuses the writes of a reconcile because it does not have an object that
// the cache holds. Events keep adding the key at once, whether its reconcile fails or not. The controller holds the key
// back longer and longer, and Health names it. After a reconcile without a contradiction the key runs at once again.
func TestContradictedKeysAreHeldBack(t *testing.T) {
	for name, answer := range map[string]error{
		"an error": errors.New("not found"), "ignored": nil,
		"every second writes nothing": errIdle,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs atomic.Int64
				var mended atomic.Bool
				c := start(t, Func[string](func(ctx context.Context, _ string) (Result, error) {
					n := runs.Add(1)
					if mended.Load() || answer == errIdle && n%2 == 0 {
						return Result{}, nil
					}
					report := ctx.Value(writes.ContradictionKey).(func(*writes.ContradictionError))
					report(&writes.ContradictionError{
						Resource: "deployments.apps", Key: "default/web", Since: time.Now(),
					})
					return Result{}, answer
				}), Options[string]{})
				for range 1200 { // a minute
					c.Enqueue("a")
					time.Sleep(50 * time.Millisecond)
				}
				if n := runs.Load(); n < 5 || n > 18 {
					t.Errorf("%d runs", n)
				}
				const says = "test: 1 key contradicted by the server, a for 1m0s: the server has had no " +
					"deployments.apps default/web"
				if err := c.Health(); err == nil || !strings.HasPrefix(err.Error(), says) {
					t.Errorf("health: %v", err)
				}
				mended.Store(true)
				time.Sleep(contradiction.Max)
				synctest.Wait()
				if err := c.Health(); err != nil {
					t.Errorf("health: %v", err)
				}
				before := runs.Load()
				c.Enqueue("a")
				synctest.Wait()
				if runs.Load() != before+1 {
					t.Error("it is held back still")
				}
				if err := c.end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
