package hotloop_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/trail"
	"github.com/flyball-dev/flyball/reconcile/internal/hotloop"
	"github.com/flyball-dev/flyball/workqueue"
)

const requeue = "RequeueAfter"

// drive begins runs of a key with the given cause and with a pause of gap between them.
func drive(d *hotloop.Detector[string], runs int, gap time.Duration,
	cause func(run int) workqueue.Cause,
) (loops []*hotloop.Loop) {
	now := time.Now()
	for run := range runs {
		now = now.Add(gap)
		_, found := d.Begin(context.Background(),
			&workqueue.Item[string]{Key: "a", Causes: []workqueue.Cause{cause(run)}}, now)
		if found != nil {
			loops = append(loops, found)
		}
	}
	return loops
}

// A key is reported once if the controller itself caused all of its runs. A key that others change as often is not
// reported.
func TestOnlyTheOwnDoingIsALoop(t *testing.T) {
	version := func(run int) string { return strings.Repeat("1", 1+run%7) }
	change := func(run int) workqueue.Cause {
		return workqueue.Cause{
			Source: "configmaps", Event: "Update", Object: "default/a",
			ResourceVersion: version(run),
		}
	}
	poll := func(int) workqueue.Cause { return workqueue.Cause{Source: "greeter", Event: requeue} }
	emit := func(int) workqueue.Cause {
		return workqueue.Cause{Source: "results", Event: "Emit", Object: "greeter a"}
	}
	for name, c := range map[string]struct {
		gap    time.Duration
		cause  func(int) workqueue.Cause
		writes bool
		says   string // empty if nothing is reported
	}{
		"own writes": {
			20 * time.Millisecond, change, true,
			"its own update of configmaps default/a (field manager greeter)",
		},
		"own writes, rare": {2 * time.Second, change, true, ""},
		"others' writes":   {time.Millisecond, change, false, ""},
		"hasty requeues":   {time.Millisecond, poll, false, "its own RequeueAfter, which is shorter than 10ms"},
		"a poll":           {50 * time.Millisecond, poll, false, ""},
		"own output":       {50 * time.Millisecond, emit, false, "what it emits to results"},
	} {
		t.Run(name, func(t *testing.T) {
			d := hotloop.New[string]("greeter", requeue)
			hotloop.Trail(d)
			for run := 0; c.writes && run < 7; run++ {
				hotloop.Trail(d).Note(
					trail.Write{
						Verb: "update", Resource: "configmaps", Object: "default/a", Manager: "greeter",
						Version: version(run),
					},
				)
			}
			loops := drive(d, 3*hotloop.ReportAfter, c.gap, c.cause)
			switch {
			case c.says == "" && len(loops) > 0:
				t.Errorf("said %v", loops[0])
			case c.says != "" && (len(loops) != 1 || loops[0].Trigger != c.says):
				t.Errorf("%d loops: %v", len(loops), loops)
			}
		})
	}
}

// The detector allocates nothing while there are no loops.
func TestWatchingOverLoopsAllocatesNothing(t *testing.T) {
	d := hotloop.New[string]("greeter", requeue)
	item := &workqueue.Item[string]{Causes: []workqueue.Cause{{Source: "pods", Event: "Update"}}}
	ctx, now, keys := t.Context(), time.Now(), []string{"a", "b", "c", "d"}
	run := 0
	if n := testing.AllocsPerRun(1000, func() {
		item.Key = keys[run%len(keys)]
		now = now.Add(time.Second)
		run++
		d.Begin(ctx, item, now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkBegin measures the cost for each run.
func BenchmarkBegin(b *testing.B) {
	d := hotloop.New[[2]string]("greeter", requeue)
	item := &workqueue.Item[[2]string]{Key: [2]string{"default", "greeting"}}
	ctx, now := b.Context(), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(2 * time.Second)
		d.Begin(ctx, item, now)
	}
}
