package workqueue_test

import (
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/misuse/misusetest"
	"github.com/flyball-dev/flyball/workqueue"
)

func TestMisuse(t *testing.T) {
	type limiter = workqueue.RateLimiter[string]
	var null *struct{ limiter }
	misusetest.Run(t, []misusetest.Call{
		misusetest.Of("NewMaxOfRateLimiter",
			misusetest.Constructs(func() limiter { return workqueue.NewMaxOfRateLimiter[string]() }),
			"no limiters given"),
		misusetest.Of("NewMaxOfRateLimiter of nil",
			misusetest.Constructs(func() limiter { return workqueue.NewMaxOfRateLimiter[string](null) }),
			"limiter 1 is nil"),
		misusetest.Of("NewMaxWaitRateLimiter",
			misusetest.Constructs(func() limiter { return workqueue.NewMaxWaitRateLimiter[string](nil, time.Second) }),
			"the limiter is nil"),
		misusetest.Of("NewMaxWaitRateLimiter of nothing", misusetest.Constructs(func() limiter {
			return workqueue.NewMaxWaitRateLimiter(workqueue.DefaultControllerRateLimiter[string](), 0)
		}), "the longest wait is 0s"),
	})
}
