package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/internal/trail"
	"github.com/flyball-dev/flyball/workqueue"
)

func loopOf(f Func[string]) *Controller[string] { return New("greeter", f, Options[string]{}) }

// In a bubble a loop that never waits would spin until the test's time is over.
func TestLoopWithoutTimeEndsTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *Controller[string]
		runs := 0
		c = loopOf(func(_ context.Context, key string) (Result, error) {
			runs++
			c.Enqueue(key)
			return Result{}, nil
		})
		c.Enqueue("a")
		err := c.Run(t.Context())
		var loop *SelfTriggeredError
		if !errors.As(err, &loop) || loop.Key != "a" || runs > endlessAfter+1 {
			t.Fatalf("ended after %d runs with %v", runs, err)
		}
		const want = "controller greeter: key a was reconciled 5000 times in a row, while no time passed, and is triggered again each time by manual Enqueue: "
		if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("said %q", err)
		}
	})
}

// drive looks at runs of a key, each of which has the cause and comes gap after the one before.
func drive(c *Controller[string], runs int, gap time.Duration, cause func(run int) workqueue.Cause) (alarms []*SelfTriggeredError) {
	now := time.Now()
	for run := range runs {
		now = now.Add(gap)
		_, alarm, _ := c.restless.begin(c, &workqueue.Item[string]{Key: "a", Causes: []workqueue.Cause{cause(run)}}, now)
		if alarm != nil {
			alarms = append(alarms, alarm)
		}
	}
	return alarms
}

// A key whose every run has been caused by the controller itself is told once. One that others change as often is not.
func TestOnlyTheOwnDoingIsALoop(t *testing.T) {
	version := func(run int) string { return strings.Repeat("1", 1+run%7) }
	change := func(run int) workqueue.Cause {
		return workqueue.Cause{Source: "configmaps", Event: "Update", Object: "default/a", ResourceVersion: version(run)}
	}
	poll := func(int) workqueue.Cause { return workqueue.Cause{Source: "greeter", Event: whyRequeue} }
	emit := func(int) workqueue.Cause {
		return workqueue.Cause{Source: "results", Event: "Emit", Object: "greeter a"}
	}
	for name, c := range map[string]struct {
		gap    time.Duration
		cause  func(int) workqueue.Cause
		writes bool
		says   string // "": nothing
	}{
		"own writes":       {20 * time.Millisecond, change, true, "its own update of configmaps default/a (field manager greeter)"},
		"own writes, rare": {2 * time.Second, change, true, ""},
		"others' writes":   {time.Millisecond, change, false, ""},
		"hasty requeues":   {time.Millisecond, poll, false, "its own RequeueAfter, which is shorter than 10ms"},
		"a poll":           {50 * time.Millisecond, poll, false, ""},
		"own output":       {50 * time.Millisecond, emit, false, "what it emits to results"},
	} {
		t.Run(name, func(t *testing.T) {
			loop := loopOf(nil)
			loop.restless.trail = &trail.Trail{}
			for run := 0; c.writes && run < 7; run++ {
				loop.restless.trail.Note(trail.Write{Verb: "update", Resource: "configmaps", Object: "default/a", Manager: "greeter", Version: version(run)})
			}
			alarms := drive(loop, 3*restlessAfter, c.gap, c.cause)
			switch {
			case c.says == "" && len(alarms) > 0:
				t.Errorf("said %v", alarms[0])
			case c.says != "" && (len(alarms) != 1 || alarms[0].Trigger != c.says):
				t.Errorf("%d alarms: %v", len(alarms), alarms)
			}
		})
	}
}

// What watches over loops costs nothing while there are none.
func TestWatchingOverLoopsAllocatesNothing(t *testing.T) {
	c := loopOf(nil)
	item := &workqueue.Item[string]{Causes: []workqueue.Cause{{Source: "pods", Event: "Update"}}}
	ctx, now, keys := t.Context(), time.Now(), []string{"a", "b", "c", "d"}
	run := 0
	if n := testing.AllocsPerRun(1000, func() {
		item.Key = keys[run%len(keys)]
		now = now.Add(time.Second)
		run++
		c.watchRow(ctx, item, now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkWatchRow is what it costs a run.
func BenchmarkWatchRow(b *testing.B) {
	c := New("greeter", Func[Request](nil), Options[Request]{})
	item := &workqueue.Item[Request]{}
	item.Key.Namespace, item.Key.Name = "default", "greeting"
	ctx, now := b.Context(), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(2 * time.Second)
		c.watchRow(ctx, item, now)
	}
}
