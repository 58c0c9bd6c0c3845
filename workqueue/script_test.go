package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/flyball-dev/flyball/workqueue"
)

// TestScripts runs the scripts in testdata, which are also figures: each shows one rule of the queue.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{q: workqueue.New(workqueue.Options[string]{QueueingTime: true}), began: time.Now()}
				defer func() { s.q.ShutDown() }()
				datadriven.RunTest(t, path, s.run)
			})
		})
	}
}

// script holds the queue a script works on.
type script struct {
	q     *workqueue.Queue[string]
	began time.Time
	// drained receives the result of a drain that was started.
	drained chan error
}

// run executes a directive, for each of its arguments if it has any, and returns its outcome.
func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new":
		s.q.ShutDown()
		o := workqueue.Options[string]{QueueingTime: true}
		if d.HasArg("priority") {
			o.Order = workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{Age: time.Second})
		} else if d.HasArg("fair") {
			o.Order = workqueue.NewFairOrder(workqueue.FairOptions[string]{Group: namespace})
		}
		s.q, s.began = workqueue.New(o), time.Now()
		return ""
	case "advance":
		wait, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait)
	case "get":
		return s.get(t, d)
	case "drain":
		drained := make(chan error, 1)
		s.drained = drained
		go func() { drained <- s.q.Drain(context.Background()) }()
	case "shutdown":
		s.q.ShutDown()
	case "dump":
	default:
		for _, arg := range d.CmdArgs {
			if len(arg.Vals) == 0 {
				s.each(t, d, arg.Key)
			}
		}
	}
	synctest.Wait()
	return s.state()
}

// each executes a directive for one key.
func (s *script) each(t *testing.T, d *datadriven.TestData, key string) {
	switch d.Cmd {
	case "add":
		o := workqueue.AddOptions{}
		var priority int
		if d.MaybeScanArgs(t, "priority", &priority) {
			o.Priority = &priority
		}
		d.MaybeScanArgs(t, "cause", &o.Cause.Event)
		s.q.AddWith(key, o)
	case "add-after", "requeue-after":
		var after string
		d.ScanArgs(t, "d", &after)
		wait, err := time.ParseDuration(after)
		if err != nil {
			t.Fatal(err)
		}
		s.q.AddWith(key, workqueue.AddOptions{After: wait, Requeue: d.Cmd == "requeue-after"})
	case "retry":
		s.q.AddRateLimited(key)
	case "forget":
		s.q.Forget(key)
	case "done":
		s.q.Done(key)
	default:
		t.Fatalf("unknown directive %s", d.Cmd)
	}
}

func (s *script) get(t *testing.T, d *datadriven.TestData) string {
	if s.q.Len() == 0 && !s.q.ShuttingDown() {
		return "(a worker would wait here)\n"
	}
	item, err := s.q.Get(t.Context())
	if errors.Is(err, workqueue.ErrShutDown) {
		return "shut down\n"
	}
	out := fmt.Sprintf("%s, ready for %v", item.Key, item.Queued)
	if item.Attempt > 0 {
		out += fmt.Sprintf(", attempt %d", item.Attempt)
	}
	if item.Priority != 0 {
		out += fmt.Sprintf(", priority %d", item.Priority)
	}
	for i, cause := range item.Causes {
		out += [2]string{", because of ", " and "}[min(i, 1)] + cause.Event
	}
	return out + "\n"
}

func (s *script) state() string {
	stats := s.q.Stats()
	out := fmt.Sprintf("%6v  ready %d  processing %d  delayed %d", time.Since(s.began), stats.Depth, stats.Processing,
		stats.Delayed)
	select {
	case err := <-s.drained:
		s.drained = nil
		out += "  drained"
		if err != nil {
			out += " but for " + err.Error()
		}
	default:
		if s.drained != nil {
			out += "  draining"
		}
	}
	return out + "\n"
}
