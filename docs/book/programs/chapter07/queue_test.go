package chapter07

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/workqueue"
)

// place names where the one key of a queue is.
func place(q *workqueue.Queue[string]) string {
	switch s := q.Stats(); {
	case s.Again > 0:
		return "dirty and processing"
	case s.Processing > 0:
		return "processing"
	case s.Depth > 0:
		return "dirty"
	default:
		return "in neither set"
	}
}

// TestChapter07States tries every operation in every state of a key, and draws the states.
func TestChapter07States(t *testing.T) {
	operations := []struct {
		name string
		do   func(q *workqueue.Queue[string])
	}{
		{"Add", func(q *workqueue.Queue[string]) { q.Add("web") }},
		{"Get", func(q *workqueue.Queue[string]) {
			if q.Len() > 0 {
				_, _ = q.Get(t.Context())
			}
		}},
		{"Done", func(q *workqueue.Queue[string]) { q.Done("web") }},
	}
	paths := map[string][]int{"in neither set": {}} // how each state is reached
	found := []string{"in neither set"}
	moves := map[string]map[string]string{}
	table := "| a key that is | `Add` | `Get` | `Done` |\n|---|---|---|---|\n"
	for i := 0; i < len(found); i++ {
		from := found[i]
		moves[from] = map[string]string{}
		table += "| " + from + " |"
		for o, op := range operations {
			q := workqueue.New(workqueue.Options[string]{})
			for _, before := range paths[from] {
				operations[before].do(q)
			}
			op.do(q)
			to := place(q)
			moves[from][op.name] = to
			if _, known := paths[to]; !known {
				paths[to] = append(append([]int{}, paths[from]...), o)
				found = append(found, to)
			}
			cell := "is then " + to
			if to == from {
				cell = "stays"
				if op.name == "Get" {
					cell = "is not handed out"
				}
			}
			table += " " + cell + " |"
		}
		table += "\n"
	}
	if len(found) != 4 {
		t.Errorf("the states are %q, want 4", found)
	}
	book.Block(t, page, table)
	book.Figure(t, "07-states", states(moves))
}

// states draws the moves that change the state.
func states(moves map[string]map[string]string) *figure.Figure {
	f := figure.New("The states of a key",
		"A key is in neither set. Add makes it dirty. Get makes it processing. Add during that makes it dirty and "+
			"processing. Done makes it dirty again in that case, and otherwise in neither set.", figure.Width, 272)
	const w, h, left, right, top, bottom = 190.0, 62.0, 84.0, 446.0, 40.0, 170.0
	at := map[string]figure.Point{
		"in neither set": {X: left, Y: top}, "dirty": {X: right, Y: top},
		"processing": {X: left, Y: bottom}, "dirty and processing": {X: right, Y: bottom},
	}
	about := map[string]string{
		"in neither set": "nothing to do", "dirty": "waits in the queue",
		"processing": "a worker has it", "dirty and processing": "a worker has it; once more",
	}
	class := map[string]figure.Class{
		"in neither set": figure.Plain, "dirty": figure.A, "processing": figure.C, "dirty and processing": figure.Lit,
	}
	for _, name := range []string{"in neither set", "dirty", "processing", "dirty and processing"} {
		p := at[name]
		f.Box(p.X, p.Y, w, h, class[name], name, about[name])
		for _, op := range []string{"Add", "Get", "Done"} {
			to := moves[name][op]
			if to == name || to == "" {
				continue
			}
			from, dest := p, at[to]
			switch {
			case from.Y == dest.Y && from.X < dest.X:
				y := from.Y + h/2
				f.Arrow(figure.Plain, figure.Point{X: from.X + w + 6, Y: y}, figure.Point{X: dest.X - 6, Y: y})
				f.Middle((from.X+w+dest.X)/2, y-8, op, "code", figure.Plain)
			case from.X == dest.X:
				x, y1, y2 := from.X+w/2, from.Y+h+6, dest.Y-6
				if from.Y > dest.Y {
					y1, y2 = from.Y-6, dest.Y+h+6
				}
				f.Arrow(figure.Plain, figure.Point{X: x, Y: y1}, figure.Point{X: x, Y: y2})
				f.Text(x+8, (y1+y2)/2+4, op, "code", figure.Plain)
			default:
				f.Arrow(figure.Plain, figure.Point{X: from.X + 12, Y: from.Y + h + 6},
					figure.Point{X: dest.X + w - 12, Y: dest.Y - 6})
				f.Middle((from.X+12+dest.X+w-12)/2-22, (from.Y+h+dest.Y)/2+2, op, "code", figure.Plain)
			}
		}
	}
	return f
}

// served lists the keys in the order in which one worker gets them.
func served(t *testing.T, q *workqueue.Queue[string]) (keys []string) {
	t.Helper()
	q.ShutDown()
	for {
		item, err := q.Get(t.Context())
		if errors.Is(err, workqueue.ErrShutDown) {
			return keys
		}
		keys = append(keys, item.Key)
		q.Done(item.Key)
	}
}

// TestChapter07Delays compares a timer for each delay with the queue's own delays.
func TestChapter07Delays(t *testing.T) {
	var b strings.Builder
	for _, timers := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			q, began := workqueue.New(workqueue.Options[string]{}), time.Now()
			addAfter := q.AddAfter
			title := "AddAfter of the queue"
			if timers {
				addAfter = func(key string, d time.Duration) { time.AfterFunc(d, func() { q.Add(key) }) }
				title = "time.AfterFunc for each delay"
			}
			fmt.Fprintf(&b, "%s: web in 1s, in 2s and in 3s, then stop after 2.5s\n", title)
			for _, d := range []time.Duration{1, 2, 3} {
				addAfter("web", d*time.Second)
			}
			until, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			for {
				item, err := q.Get(until)
				if err != nil {
					break
				}
				fmt.Fprintf(&b, "%5v  run %s\n", time.Since(began), item.Key)
				q.Done(item.Key)
			}
			fmt.Fprintf(&b, "%5v  stop; %d delays are pending in the queue\n", time.Since(began), q.Stats().Delayed)
			q.ShutDown()
			time.Sleep(time.Minute) // The timers fire into a queue that is shut down.
		})
	}
	book.Trace(t, page, b.String())
}

// TestChapter07Backoff shows what the default limiter says to a key that fails and fails.
func TestChapter07Backoff(t *testing.T) {
	limiter := workqueue.NewExponentialRateLimiter[string](workqueue.ExponentialOptions{})
	table := "| failures in a row | the key waits |\n|---|---|\n"
	for n := 1; n <= 19; n++ {
		wait := limiter.When("web")
		if n <= 4 || n == 8 || n == 12 || n >= 16 && n != 17 {
			table += fmt.Sprintf("| %d | %v |\n", n, wait)
		}
	}
	book.Block(t, page, table)
}

// TestChapter07Bucket shows what the default limiter does when many keys fail at once.
func TestChapter07Bucket(t *testing.T) {
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		limiter := workqueue.DefaultControllerRateLimiter[string]()
		for n := 1; n <= 500; n++ {
			wait := limiter.When(fmt.Sprintf("pod-%d", n))
			if n == 1 || n == 100 || n == 101 || n == 102 || n == 200 || n == 500 {
				fmt.Fprintf(&b, "key %3d fails for the first time: it waits %v\n", n, wait.Round(time.Millisecond))
			}
		}
	})
	book.Trace(t, page, b.String())
}

// TestChapter07Orders shows the same storm in three orders.
func TestChapter07Orders(t *testing.T) {
	urgent := 1
	rows := make([][]figure.Cell, 0, 3)
	for _, order := range []string{"first in, first out", "priority", "fair, by namespace"} {
		o := workqueue.Options[string]{}
		switch order {
		case "priority":
			o.Order = workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{})
		case "fair, by namespace":
			o.Order = workqueue.NewFairOrder(workqueue.FairOptions[string]{Group: func(key string) string {
				namespace, _, _ := strings.Cut(key, "/")
				return namespace
			}})
		}
		q := workqueue.New(o)
		for n := 1; n <= 5; n++ {
			q.Add(fmt.Sprintf("shop/%d", n))
		}
		q.AddWith("blog/1", workqueue.AddOptions{Priority: &urgent})
		q.Add("blog/2")
		row := []figure.Cell{{Text: order}}
		for _, key := range served(t, q) {
			class := figure.Plain
			if strings.HasPrefix(key, "blog") {
				class = figure.Lit
			}
			row = append(row, figure.Cell{Text: key, Class: class})
		}
		rows = append(rows, row)
	}
	book.Figure(t, "07-orders", figure.Table{
		Title: "Seven keys in three orders",
		Desc: "Five keys of the namespace shop and two of blog are added; blog/1 has a higher priority than the " +
			"others. First in, first out serves blog last. By priority blog/1 comes first. The fair order takes turns.",
		First: 176, Head: []string{"", "1st", "2nd", "3rd", "4th", "5th", "6th", "7th"}, Rows: rows,
	}.Draw())
}

// TestChapter07Stop compares the two ways to shut down.
func TestChapter07Stop(t *testing.T) {
	var b strings.Builder
	for _, drain := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q, began := workqueue.New(workqueue.Options[string]{}), time.Now()
			var mu sync.Mutex
			say := func(format string, args ...any) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(&b, "%3v  "+format+"\n", append([]any{time.Since(began)}, args...)...)
			}
			work := func() {
				for {
					item, err := q.Get(t.Context())
					if err != nil {
						say("the worker ends: %v", err)
						return
					}
					say("begin %s", item.Key)
					time.Sleep(time.Second)
					say("done  %s", item.Key)
					q.Done(item.Key)
				}
			}
			q.Add("a")
			q.Add("b")
			q.AddAfter("later", time.Hour)
			go work()
			synctest.Wait()
			if drain {
				say("Drain is called")
				err := q.Drain(t.Context())
				synctest.Wait()
				say("Drain returns %v", err)
			} else {
				say("ShutDown is called")
				q.ShutDown()
				say("ShutDown returns")
			}
			q.Add("c")
			synctest.Wait()
			time.Sleep(time.Minute)
		})
		if !drain {
			b.WriteString("\n")
		}
	}
	book.Trace(t, page, b.String())
}
