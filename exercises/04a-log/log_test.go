package log

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// run runs a test in virtual time. At its end, the context ends the calls that still wait.
func run(t *testing.T, test func(t *testing.T, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer func() {
			cancel()
			time.Sleep(time.Second) // A Push or Take that polls the context ends, too.
		}()
		test(t, ctx)
	})
}

// push is Push for tests: it fails instead of waiting.
func push(t *testing.T, ctx context.Context, l *Log[string], entries ...string) {
	t.Helper()
	for _, e := range entries {
		began := time.Now()
		if err := l.Push(ctx, e); err != nil {
			t.Fatalf("Push(%q) returned %v after %v, and there was room for it.", e, err, time.Since(began))
		}
	}
}

// take is Take for tests: it fails instead of waiting forever.
func take(t *testing.T, ctx context.Context, l *Log[string]) []string {
	t.Helper()
	all, err := l.Take(ctx)
	if err != nil {
		t.Fatalf("Take returned %v, and something was there.", err)
	}
	return all
}

func Test1EntriesComeOutInTheOrderOfTheirPushes(t *testing.T) {
	run(t, func(t *testing.T, ctx context.Context) {
		l := New[string](10)
		push(t, ctx, l, "a", "b", "a")
		if n := l.Len(); n != 3 {
			t.Errorf("After three Pushes, Len is %d. It should be 3: a log merges nothing.", n)
		}
		if got := take(t, ctx, l); !slices.Equal(got, []string{"a", "b", "a"}) {
			t.Fatalf("Take returned %q, it should be [a b a]: all that waits, in its order.", got)
		}
		if n := l.Len(); n != 0 {
			t.Fatalf("After Take, Len is %d. It should be 0.", n)
		}
	})
}

func Test2WhatWasTakenStaysAsItIs(t *testing.T) {
	run(t, func(t *testing.T, ctx context.Context) {
		l := New[string](10)
		push(t, ctx, l, "a", "b")
		first := take(t, ctx, l)
		push(t, ctx, l, "c", "d")
		take(t, ctx, l)
		push(t, ctx, l, "e", "f")
		if !slices.Equal(first, []string{"a", "b"}) {
			t.Fatalf("Take had returned [a b]. Later Pushes made %q of it.\n"+
				"Somebody may still read the batch. The log must not go on with the same array.", first)
		}
	})
}

func Test3TakeWaitsForAnEntry(t *testing.T) {
	run(t, func(t *testing.T, ctx context.Context) {
		l := New[string](10)
		go func() {
			time.Sleep(time.Minute)
			_ = l.Push(ctx, "late")
		}()
		began := time.Now()
		got, err := l.Take(ctx)
		if err != nil || !slices.Equal(got, []string{"late"}) || time.Since(began) != time.Minute {
			t.Fatalf("The log was empty when Take was called, and after a minute \"late\" came. Take returned %q, %v "+
				"after %v.", got, err, time.Since(began))
		}
	})
}

func Test4TakeEndsWithItsContext(t *testing.T) {
	run(t, func(t *testing.T, ctx context.Context) {
		l := New[string](10)
		push(t, ctx, l, "a")
		take(t, ctx, l)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		began := time.Now()
		got, err := l.Take(short)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Fatalf("Nothing came, and the context ended after a second. Take returned %q, %v after %v.\n"+
				"A program that ends must not wait for news.", got, err, time.Since(began))
		}
	})
}

func Test5PushWaitsWhileTheLogIsFull(t *testing.T) {
	run(t, func(t *testing.T, ctx context.Context) {
		l := New[string](2)
		push(t, ctx, l, "a", "b")
		returned := make(chan error, 1)
		go func() { returned <- l.Push(ctx, "c") }()
		synctest.Wait()
		if n := l.Len(); n > 2 {
			t.Fatalf("The limit is 2, and %d entries are in the log.\n"+
				"Without a bound, a consumer that is stuck costs all memory.", n)
		}
		select {
		case err := <-returned:
			t.Fatalf("The log was full, and Push did not wait: it returned %v. Is c in the log?", err)
		default:
		}
		if got := take(t, ctx, l); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("Take returned %q, it should be [a b].", got)
		}
		synctest.Wait()
		select {
		case err := <-returned:
			if err != nil {
				t.Fatalf("There was room again, and Push returned %v.", err)
			}
		default:
			t.Fatal("Push waited for room, and Take made room. Push still waits.")
		}
		if got := take(t, ctx, l); !slices.Equal(got, []string{"c"}) {
			t.Fatalf("The next Take returned %q, it should be [c].", got)
		}
	})
}

func Test6PushEndsWithItsContext(t *testing.T) {
	run(t, func(t *testing.T, ctx context.Context) {
		l := New[string](1)
		push(t, ctx, l, "a")
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		began := time.Now()
		if err := l.Push(short, "b"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Fatalf("The log stayed full, and the context ended after a second. Push returned %v after %v.",
				err, time.Since(began))
		}
		if got := take(t, ctx, l); !slices.Equal(got, []string{"a"}) {
			t.Fatalf("The Push of b had returned an error, and Take returned %q. It should be [a].", got)
		}
	})
}

func Test7EverybodyWhoWaitsWakesUp(t *testing.T) {
	run(t, func(t *testing.T, ctx context.Context) {
		l := New[string](3)
		push(t, ctx, l, "a", "b", "c")
		var producers sync.WaitGroup
		for n := range 5 {
			producers.Go(func() { _ = l.Push(ctx, fmt.Sprint("late-", n)) })
		}
		synctest.Wait()
		take(t, ctx, l)
		synctest.Wait()
		if n := l.Len(); n < 3 {
			t.Fatalf("Five Pushes waited, and Take made room for three. %d of them went on.\n"+
				"A channel that is closed wakes all who wait for it, a token wakes one.", n)
		}
		if n := l.Len(); n > 3 {
			t.Fatalf("The limit is 3. Five Pushes waited, Take made room, and %d entries are in the log.\n"+
				"A Push that wakes up must look again whether there is room: others may have been faster.", n)
		}
		take(t, ctx, l)
		synctest.Wait()
		take(t, ctx, l)
		producers.Wait()
	})
}

// aboutToWait calls a function when somebody is about to wait for the end of the context.
type aboutToWait struct {
	context.Context
	call func()
}

func (c aboutToWait) Done() <-chan struct{} {
	c.call()
	return c.Context.Done()
}

func Test8NothingIsLostAndNothingOvertakes(t *testing.T) {
	run(t, func(t *testing.T, ctx context.Context) {
		l := New[string](10)
		pushed := make(chan struct{})
		push := sync.OnceFunc(func() {
			go func() {
				_ = l.Push(ctx, "now")
				close(pushed)
			}()
			for range 1000 { // The caller may hold the mutex.
				select {
				case <-pushed:
				default:
					runtime.Gosched()
				}
			}
		})
		if _, err := l.Take(aboutToWait{ctx, push}); err != nil {
			t.Fatalf("Take found the log empty, an entry came, and then Take began to wait. It returned %v after an "+
				"hour.\nThe token must stay there until Take looks for it.", err)
		}
	})

	const producers, each, limit = 4, 500, 7
	run(t, func(t *testing.T, ctx context.Context) {
		l := New[[2]int](limit)
		for p := range producers {
			go func() {
				for n := range each {
					if l.Push(ctx, [2]int{p, n}) != nil {
						return
					}
				}
			}()
		}
		next, got := [producers]int{}, 0
		for got < producers*each {
			batch, err := l.Take(ctx)
			if err != nil {
				t.Fatalf("%d entries were pushed, and %d came out until Take returned %v.\n"+
					"An entry was lost, or Take sleeps although something is there.", producers*each, got, err)
			}
			if len(batch) > limit {
				t.Fatalf("The limit is %d, and Take returned %d entries at once.\nWho woke up must look again whether "+
					"there is room: another one may have been faster.", limit, len(batch))
			}
			for _, entry := range batch {
				if entry[1] != next[entry[0]] {
					t.Fatalf("Producer %d: entry %d came, and entry %d should be next.",
						entry[0], entry[1], next[entry[0]])
				}
				next[entry[0]]++
			}
			got += len(batch)
		}
	})
}
