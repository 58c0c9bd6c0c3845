package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

var errRefused = errors.New("refused")

// A lab runs a loop in virtual time, and records when each key was reconciled.
type lab struct {
	*Loop
	mu   sync.Mutex
	runs map[string][]time.Duration
}

// start runs a loop with one worker for the rest of the test. reconcile gets the number of the key's run, from 1.
func start(t *testing.T, maxRetries int, reconcile func(key string, run int) (kube.Result, error)) *lab {
	t.Helper()
	l, queue := &lab{runs: map[string][]time.Duration{}}, NewQueue()
	began := time.Now()
	l.Loop = &Loop{
		Queue: queue, Workers: 1, MaxRetries: maxRetries,
		Reconcile: func(_ context.Context, key string) (kube.Result, error) {
			l.mu.Lock()
			l.runs[key] = append(l.runs[key], time.Since(began))
			run := len(l.runs[key])
			l.mu.Unlock()
			return reconcile(key, run)
		},
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := run(ctx, t, l.Loop)
	t.Cleanup(func() {
		stop()
		l.Queue.ShutDown() // Frees a worker if Run has not done so.
		<-ended
		if late := queue.late; len(late) > 0 {
			t.Errorf("The loop called: %s.\nDone ends the work on a key, and another worker may take it. What becomes "+
				"of the key must be decided before.", strings.Join(late, ", "))
		}
	})
	return l
}

// run calls Run in a goroutine. The channel is closed when it has returned.
func run(ctx context.Context, t *testing.T, l *Loop) <-chan struct{} {
	t.Helper()
	ended := make(chan struct{})
	var panicked any
	go func() {
		defer close(ended)
		defer func() { panicked = recover() }()
		l.Run(ctx)
	}()
	synctest.Wait()
	if panicked != nil {
		t.Fatal(panicked)
	}
	return ended
}

func (l *lab) expect(t *testing.T, key, why string, want ...time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := l.runs[key]; !slices.Equal(got, want) {
		t.Fatalf("%s was reconciled after %v, it should be after %v.\n%s", key, got, want, why)
	}
}

const ms = time.Millisecond

func Test1AKeyIsReconciledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, 0, func(string, int) (kube.Result, error) { return kube.Result{}, nil })
		l.Queue.Add("a")
		time.Sleep(time.Minute)
		l.expect(t, "a", "A reconcile without an error is done.", 0)
		l.Queue.Add("a")
		time.Sleep(time.Minute)
		l.expect(t, "a", "When somebody adds the key again, it runs again. Was Done called?", 0, time.Minute)
	})
}

func Test2AKeyThatFailsIsRetriedWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, 0, func(_ string, run int) (kube.Result, error) {
			if run <= 3 {
				return kube.Result{}, errRefused
			}
			return kube.Result{}, nil
		})
		l.Queue.Add("a")
		time.Sleep(time.Minute)
		l.expect(t, "a", "The first retry comes after 5 ms, and each further one waits twice as long.",
			0, 5*ms, 15*ms, 35*ms)
	})
}

func Test3ASuccessEndsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, 0, func(_ string, run int) (kube.Result, error) {
			if run == 2 {
				return kube.Result{}, nil
			}
			return kube.Result{}, errRefused
		})
		l.Queue.Add("a") // fails, and succeeds 5 ms later
		time.Sleep(time.Minute)
		l.Queue.Add("a")
		time.Sleep(6 * ms)
		l.expect(t, "a", "It succeeded in between, so its next failure is a first failure again.",
			0, 5*ms, time.Minute, time.Minute+5*ms)
	})
	synctest.Test(t, func(t *testing.T) {
		l := start(t, 0, func(_ string, run int) (kube.Result, error) {
			if run == 2 {
				return kube.Result{RequeueAfter: time.Minute}, nil
			}
			return kube.Result{}, errRefused
		})
		l.Queue.Add("a")
		time.Sleep(time.Minute + 11*ms)
		l.expect(t, "a", "Its second run succeeded and asked for another run a minute later, which failed. That was a "+
			"first failure again.", 0, 5*ms, time.Minute+5*ms, time.Minute+10*ms)
	})
}

func Test4AKeyRunsAgainWhenItAsksForThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, 0, func(key string, run int) (kube.Result, error) {
			if key == "a" && run < 3 {
				return kube.Result{RequeueAfter: time.Hour}, nil
			}
			return kube.Result{}, nil
		})
		l.Queue.Add("a")
		l.Queue.Add("b")
		time.Sleep(24 * time.Hour)
		l.expect(t, "a", "Its result asked for another run an hour later, twice.", 0, time.Hour, 2*time.Hour)
		l.expect(t, "b", "a waits for its next run. The worker must not: the queue has AddAfter for that.", 0)
	})
}

func Test5ATerminalErrorIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terminal := fmt.Errorf("reconcile: %w", Terminal(errRefused))
		l := start(t, 0, func(string, int) (kube.Result, error) { return kube.Result{}, terminal })
		l.Queue.Add("a")
		time.Sleep(time.Hour)
		l.expect(t, "a", "The error was made by Terminal, and wrapped. errors.As looks through the wrapping.", 0)
		l = start(t, 0, func(_ string, run int) (kube.Result, error) {
			if run == 3 {
				return kube.Result{}, terminal
			}
			return kube.Result{}, errRefused
		})
		l.Queue.Add("a")
		time.Sleep(time.Minute)
		l.Queue.Add("a")
		time.Sleep(6 * ms)
		l.expect(t, "a", "Its third run was terminal, and a minute later somebody added it: it begins anew, with a "+
			"wait of 5 ms.", 0, 5*ms, 15*ms, time.Minute, time.Minute+5*ms)
		if !errors.Is(Terminal(errRefused), errRefused) {
			t.Fatal("Terminal hides the error that it marks: errors.Is does not find it. Does your type have Unwrap?")
		}
	})
}

func Test6APanicIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, 0, func(key string, run int) (kube.Result, error) {
			if key == "b" && run < 3 {
				panic("a bug of the author")
			}
			return kube.Result{}, nil
		})
		for _, key := range []string{"a", "b", "c"} {
			l.Queue.Add(key)
		}
		time.Sleep(time.Minute)
		l.expect(t, "b", "It panicked twice. A panic is retried as an error is.", 0, 5*ms, 15*ms)
		l.expect(t, "c", "Another key panicked. That is no reason to leave this one out.", 0)
	})
}

func Test7AKeyIsGivenUpAfterMaxRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := start(t, 2, func(string, int) (kube.Result, error) { return kube.Result{}, errRefused })
		l.Queue.Add("a")
		time.Sleep(time.Minute)
		l.expect(t, "a", "MaxRetries is 2: one run, and two retries.", 0, 5*ms, 15*ms)
		l.Queue.Add("a")
		time.Sleep(time.Minute)
		l.expect(t, "a", "The key was given up, and then somebody added it. It begins anew, with a wait of 5 ms.",
			0, 5*ms, 15*ms, time.Minute, time.Minute+5*ms, time.Minute+15*ms)
	})
}

func Test8StopDoesNotDisturbAReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue()
		var begun, alive atomic.Int32
		l := &Loop{Queue: q, Workers: 1, Reconcile: func(ctx context.Context, _ string) (kube.Result, error) {
			begun.Add(1)
			time.Sleep(3 * time.Second)
			if ctx.Err() == nil {
				alive.Add(1)
			}
			return kube.Result{}, nil
		}}
		ctx, stop := context.WithCancel(t.Context())
		q.Add("a")
		q.Add("b")
		ended := run(ctx, t, l)
		time.Sleep(time.Second)
		stop()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("Run returned while a reconcile was still running. It should wait for it.")
		default:
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case <-ended:
		default:
			q.ShutDown()
			t.Fatal("The context has been done for a minute, and Run has not returned. Who wakes the workers in Get?")
		}
		if alive.Load() == 0 {
			t.Error("The context of the running reconcile ended with the stop, so its last write would have failed.")
		}
		if n := begun.Load(); n != 1 {
			t.Errorf("%d keys were begun. b was waiting at the stop, and should not be begun: it takes time that the "+
				"process may not have.", n)
		}
		if n := len(q.working); n != 0 {
			t.Errorf("Run has returned, and Done was not called for %d key. Whoever waits until the queue is drained "+
				"waits for ever.", n)
		}
	})
}

func Test9WorkersShareTheKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue()
		var done atomic.Int32
		l := &Loop{Queue: q, Workers: 4, Reconcile: func(context.Context, string) (kube.Result, error) {
			time.Sleep(time.Second)
			done.Add(1)
			return kube.Result{}, nil
		}}
		ctx, stop := context.WithCancel(t.Context())
		for n := range 8 {
			q.Add(fmt.Sprint("key-", n))
		}
		ended := run(ctx, t, l)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := done.Load(); n != 8 {
			t.Errorf("There are eight keys of a second each, and four workers. After two seconds %d are done.", n)
		}
		stop()
		synctest.Wait()
		select {
		case <-ended:
		default:
			q.ShutDown()
			t.Fatal("All workers waited in Get when the context ended, and Run has not returned. Who wakes them?")
		}
	})
}
