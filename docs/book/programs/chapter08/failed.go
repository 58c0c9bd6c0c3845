package chapter08

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// work calls sync for one key after the other, until the queue is shut down. It calls failed for a key that failed.
func work(q *workqueue.Queue[string], sync func(key string) error, failed func(key string)) {
	for {
		item, err := q.Get(context.Background())
		if err != nil {
			return
		}
		if err := sync(item.Key); err != nil {
			failed(item.Key)
		} else {
			q.Forget(item.Key)
		}
		q.Done(item.Key)
	}
}

// answers are what a loop can do with a key that failed.
func answers(q *workqueue.Queue[string]) []func(key string) {
	return []func(key string){
		func(string) {},
		func(key string) { q.Add(key) },
		func(key string) {
			time.Sleep(5 * time.Second)
			q.Add(key)
		},
		func(key string) { q.AddRateLimited(key) },
	}
}
