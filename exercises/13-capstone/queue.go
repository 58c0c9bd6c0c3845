package capstone

import (
	"sync"
	"time"

	queue "github.com/flyball-dev/flyball/exercises/07a-queue"
	delay "github.com/flyball-dev/flyball/exercises/07b-delay"
)

// workQueue is the kube.Queue of the loop: the queue of task 07a, the delays of task 07b, and a count of failures.
type workQueue struct {
	*queue.Queue[string]
	delays *delay.Delays[string]

	mu       sync.Mutex
	failures map[string]int
}

func newQueue() *workQueue {
	q := &workQueue{Queue: queue.New[string](), failures: map[string]int{}}
	q.delays = delay.New(q.Add)
	return q
}

func (q *workQueue) AddAfter(key string, d time.Duration) { q.delays.AddAfter(key, d) }

func (q *workQueue) AddRateLimited(key string) {
	q.mu.Lock()
	wait := min(5*time.Millisecond<<min(q.failures[key], 30), 1000*time.Second)
	q.failures[key]++
	q.mu.Unlock()
	q.AddAfter(key, wait)
}

func (q *workQueue) Failures(key string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failures[key]
}

func (q *workQueue) Forget(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failures, key)
}

func (q *workQueue) ShutDown() {
	q.delays.Stop()
	q.Queue.ShutDown()
}
