package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

func ExampleNew() {
	ctx := context.Background()
	q := workqueue.New(workqueue.Options[string]{})
	q.AddWithCause("default/web", workqueue.Cause{Source: "Pod", Event: "Update", Object: "default/web-7d4b9"})
	q.AddWithCause("default/web", workqueue.Cause{Source: "Pod", Event: "Delete", Object: "default/web-x2x8c"})
	q.Add("default/db")
	q.ShutDown()

	// This is the loop of a controller's worker.
	for {
		item, err := q.Get(ctx)
		if errors.Is(err, workqueue.ErrShutDown) {
			break
		}
		fmt.Println("reconcile", item.Key)
		for _, cause := range item.Causes {
			fmt.Println("  because of", cause.Event, cause.Object)
		}
		q.Forget(item.Key)
		q.Done(item.Key)
	}
	// Output:
	// reconcile default/web
	//   because of Update default/web-7d4b9
	//   because of Delete default/web-x2x8c
	// reconcile default/db
}

func ExampleQueue_Drain() {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("default/web")
	q.Add("default/db")
	item, _ := q.Get(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(q.Drain(ctx))
	q.Done(item.Key)
	// Output:
	// drain work queue: context deadline exceeded: 1 queued (default/db), 1 processing (default/web)
}

func ExampleNewPriorityOrder() {
	q := workqueue.New(workqueue.Options[string]{
		Order: workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{Age: 100 * time.Millisecond}),
	})
	low := -100 // ready keys of priority 0 overtake it for 10 s, not longer
	q.AddWith("resync", workqueue.AddOptions{Priority: &low})
	q.Add("event")

	item, _ := q.Get(context.Background())
	fmt.Println(item.Key)
	// Output:
	// event
}

func ExampleNewFairOrder() {
	namespace := func(key string) string { return strings.Split(key, "/")[0] }
	q := workqueue.New(workqueue.Options[string]{
		Order: workqueue.NewFairOrder(workqueue.FairOptions[string]{Group: namespace}),
	})
	for _, key := range []string{"noisy/1", "noisy/2", "noisy/3", "quiet/1"} {
		q.Add(key)
	}
	for q.Len() > 0 {
		item, _ := q.Get(context.Background())
		fmt.Println(item.Key)
		q.Done(item.Key)
	}
	// Output:
	// noisy/1
	// quiet/1
	// noisy/2
	// noisy/3
}

func ExampleNewExponentialRateLimiter() {
	limiter := workqueue.NewExponentialRateLimiter[string](
		workqueue.ExponentialOptions{Base: time.Second, Max: 5 * time.Second},
	)
	for range 4 {
		fmt.Println(limiter.When("default/web"))
	}
	// Output:
	// 1s
	// 2s
	// 4s
	// 5s
}

func ExampleNewFastSlowRateLimiter() {
	limiter := workqueue.NewFastSlowRateLimiter[string](time.Second, time.Minute, 2)
	for range 3 {
		fmt.Println(limiter.When("default/web"))
	}
	// Output:
	// 1s
	// 1s
	// 1m0s
}

func ExampleNewBucketRateLimiter() {
	limiter := workqueue.NewBucketRateLimiter[string](0.001, 1)
	fmt.Println(limiter.When("default/web"))
	fmt.Println(limiter.When("default/db"))
	// Output:
	// 0s
	// 1m0s
}

func ExampleNewMaxOfRateLimiter() {
	limiter := workqueue.NewMaxOfRateLimiter[string](
		workqueue.NewExponentialRateLimiter[string](workqueue.ExponentialOptions{Base: time.Second, Max: time.Hour}),
		workqueue.NewBucketRateLimiter[string](10, 100),
	)
	fmt.Println(limiter.When("default/web"), limiter.When("default/web"))
	// Output:
	// 1s 2s
}

func ExampleNewMaxWaitRateLimiter() {
	limiter := workqueue.NewMaxWaitRateLimiter[string](workqueue.DefaultControllerRateLimiter[string](),
		20*time.Millisecond)
	for range 4 {
		fmt.Println(limiter.When("default/web"))
	}
	// Output:
	// 5ms
	// 10ms
	// 20ms
	// 20ms
}
