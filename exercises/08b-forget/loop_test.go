package forget

import (
	"errors"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// queue records how long the key has to wait.
type queue struct {
	kube.Queue
	failures int
	wait     time.Duration
	added    int
}

func (q *queue) Add(string) { q.wait, q.added = 0, q.added+1 }

func (q *queue) Failures(string) int { return q.failures }

func (q *queue) AddAfter(_ string, d time.Duration) { q.wait, q.added = d, q.added+1 }

func (q *queue) AddRateLimited(string) {
	q.wait, q.added = min(5*time.Millisecond<<min(q.failures, 30), 1000*time.Second), q.added+1
	q.failures++
}

func (q *queue) Forget(string) { q.failures = 0 }

var errNoAnswer = errors.New("the authority does not answer")

func Test1AFailureNowAndThenIsRetriedSoon(t *testing.T) {
	q := &queue{}
	var longest time.Duration
	for day := 1; day <= 30; day++ {
		settle(q, "web-cert", kube.Result{}, errNoAnswer) // once a day
		longest = max(longest, q.wait)
		for range 24 {
			settle(q, "web-cert", kube.Result{RequeueAfter: time.Hour}, nil)
		}
	}
	if longest > 5*time.Millisecond {
		t.Fatalf("One renewal a day failed, and 24 went well. After a month, the retry of a failure waits for %v.\n"+
			"Each failure was the first one since a success, so each retry should wait for 5ms.", longest)
	}
}

func Test2FailuresInARowWaitLonger(t *testing.T) {
	q := &queue{}
	for range 10 {
		settle(q, "web-cert", kube.Result{}, errNoAnswer)
	}
	if want := 2560 * time.Millisecond; q.wait != want {
		t.Fatalf("After ten failures in a row the retry waits for %v, it should be %v: the authority needs a rest.",
			q.wait, want)
	}
}

func Test3TheNextRenewalIsNotLost(t *testing.T) {
	q := &queue{}
	settle(q, "web-cert", kube.Result{RequeueAfter: time.Hour}, nil)
	if q.added != 1 || q.wait != time.Hour {
		t.Fatalf("A renewal went well and asked for the next one in an hour. The key was added %d time(s), to run "+
			"after %v.", q.added, q.wait)
	}
}

func Test4ADoneKeyIsForgotten(t *testing.T) {
	q := &queue{}
	settle(q, "web-cert", kube.Result{}, errNoAnswer)
	settle(q, "web-cert", kube.Result{}, nil)
	if q.failures != 0 || q.added != 1 {
		t.Fatalf("The key failed and then was done. It has %d failure(s), and was added %d time(s). It should have "+
			"none, and one.", q.failures, q.added)
	}
}
