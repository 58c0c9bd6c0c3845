package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// A key that runs again because of its Result or of a failure keeps its priority, unless the Result sets another one.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller, which keeps priorities on requeues.
func TestPriorityIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		low, high := -100, 5
		r := Func[string](func(_ context.Context, key string) (Result, error) {
			switch key {
			case "fails":
				return Result{}, errors.New("no")
			case "raised":
				return Result{RequeueAfter: time.Hour, Priority: &high}, nil
			}
			return Result{RequeueAfter: time.Hour}, nil
		})
		c := start(t, r, Options[string]{Order: workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{})})
		for _, key := range []string{"fails", "again", "raised"} {
			c.Add(key, workqueue.AddOptions{Priority: &low})
		}
		synctest.Wait()
		want := map[string]int{"fails": low, "again": low, "raised": high}
		for _, d := range c.queue.View(10).Delayed {
			if d.Priority != want[d.Key] {
				t.Errorf("%s has priority %d, want %d", d.Key, d.Priority, want[d.Key])
			}
			delete(want, d.Key)
		}
		if len(want) > 0 {
			t.Errorf("%v are not delayed", want)
		}
		c.stop()
		<-c.done
	})
}

// TestForget: a forgotten key does not run again, and the controller remembers nothing about it.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		r := Func[string](func(_ context.Context, key string) (Result, error) {
			ran = append(ran, key)
			if key == "later" {
				return Result{RequeueAfter: time.Minute}, nil
			}
			return Result{}, errors.New("no")
		})
		c := start(t, r, Options[string]{})
		for _, key := range []string{"fails", "later", "other"} {
			c.Enqueue(key)
		}
		synctest.Wait()
		c.ForgetFunc(func(key string) bool { return key != "other" })
		ran = nil
		if n := c.queue.NumRequeues("fails"); n != 0 {
			t.Errorf("%d failures are remembered", n)
		}
		if w := c.Work(); len(w.Delayed) != 1 || len(w.Failing) != 1 || w.Failing[0].Key != "other" {
			t.Errorf("%+v", w)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if slices.ContainsFunc(ran, func(key string) bool { return key != "other" }) {
			t.Errorf("ran %q", ran)
		}
		c.stop()
		<-c.done
	})
}

// TestForgetWhatIsInFlight: if a key is forgotten during a run, the controller also forgets what that run leaves
// behind.
func TestForgetWhatIsInFlight(t *testing.T) {
	ways := map[string]func(c *started, match func(string) bool, keys []string){
		"by what matches": func(c *started, match func(string) bool, _ []string) { c.ForgetFunc(match) },
		"one by one": func(c *started, match func(string) bool, keys []string) {
			for _, key := range keys {
				if match(key) {
					c.Forget(key)
				}
			}
		},
	}
	keys := []string{"fails", "later", "other", "refused", "terminal", "succeeds"}
	for name, forgets := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turn := make(chan struct{})
				var mu sync.Mutex // guards runs
				runs := map[string]int{}
				r := Func[string](func(_ context.Context, key string) (Result, error) {
					<-turn
					mu.Lock()
					runs[key]++
					mu.Unlock()
					switch key {
					case "fails", "other":
						return Result{}, errors.New("no")
					case "later":
						return Result{RequeueAfter: time.Hour}, nil
					case "refused":
						return Result{}, refuse("create", "pods", "x")
					case "terminal":
						return Result{}, Terminal(errors.New("no"))
					}
					return Result{}, nil
				})
				c := start(t, r, Options[string]{Workers: len(keys), MinInterval: time.Millisecond, MaxRetries: 1})
				for _, key := range keys {
					c.Enqueue(key)
				}
				synctest.Wait()
				forgets(c, func(key string) bool { return key != "other" }, keys)
				close(turn)
				synctest.Wait()
				if w := c.Work(); len(w.Delayed) != 1 || len(w.Failing) != 1 || w.Failing[0].Key != "other" {
					t.Errorf("%+v", w)
				}
				if n := c.queue.NumRequeues("fails") + 10*c.queue.NumRequeues("refused") +
					100*c.queue.NumRequeues("other"); n != 100 {
					t.Errorf("failures remembered: %d", n)
				}
				c.mu.Lock()
				if e := c.keys.entries["other"]; len(c.keys.entries) != 1 || e == nil || e.failing.IsZero() ||
					len(c.checks.forbidden) != 0 {
					t.Errorf("remembered %v, missing permissions %v", c.keys.entries, c.checks.forbidden)
				}
				c.mu.Unlock()
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				if runs["other"] != 2 || len(runs) != len(keys) || runs["fails"]+runs["later"]+runs["refused"]+
					runs["terminal"] != 4 {
					t.Errorf("ran %v", runs)
				}
				c.Forget("other") // This key is not in flight.
				if w := c.Work(); len(w.Failing) != 0 {
					t.Errorf("%+v", w)
				}
				c.stop()
				<-c.done
			})
		})
	}
}

// TestCausesOfFailuresStay: Work returns the causes of a failure after the queue has reused their memory.
func TestCausesOfFailuresStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t,
			Func[string](
				func(context.Context, string) (Result, error) { return Result{}, Terminal(errors.New("no")) },
			), Options[string]{})
		c.Add("a", workqueue.AddOptions{Cause: workqueue.Cause{Source: "test", Event: "Add"}})
		synctest.Wait()
		c.Add("b", workqueue.AddOptions{Cause: workqueue.Cause{Source: "other", Event: "Add"}})
		synctest.Wait()
		for _, f := range c.Work().Failing {
			if want := map[string]string{"a": "test", "b": "other"}[f.Key]; len(f.Causes) != 1 ||
				f.Causes[0].Source != want {
				t.Errorf("%s failed because of %+v", f.Key, f.Causes)
			}
		}
		c.stop()
		<-c.done
	})
}
