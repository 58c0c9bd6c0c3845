// Package chapter08 has the programs of the chapter about processNextWorkItem and syncHandler: four answers to a key
// that failed, of which three are wrong, and what our controller does with each answer of a reconciler.
package chapter08

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
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

const page = "08-sync-handler"

var errBroken = errors.New("the image registry does not answer")

// story is what happened in one run of the scenario.
type story struct {
	calls   []time.Duration // of the key "broken"
	mended  time.Duration   // when "broken" was right; 0 if it never was
	waits   []figure.Span   // of the key "fine", from its add to its sync
	longest time.Duration   // the longest of these
}

// tell runs the scenario with one of the answers. A sync takes 10 ms, and there is one worker. The key "broken" is
// added once; its sync fails until 3 s have passed. The key "fine" is added every half second. The run ends after 10 s.
func tell(t *testing.T, answer int) (s story) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		q, began := workqueue.New(workqueue.Options[string]{}), time.Now()
		added := began
		sync := func(key string) error {
			now := time.Since(began)
			defer time.Sleep(10 * time.Millisecond)
			if key == "fine" {
				from := added.Sub(began)
				s.waits = append(s.waits, figure.Span{From: from.Seconds(), To: now.Seconds(), Class: figure.Bad})
				s.longest = max(s.longest, now-from)
				return nil
			}
			s.calls = append(s.calls, now)
			if now < 3*time.Second {
				return errBroken
			}
			s.mended = now
			return nil
		}
		go work(q, sync, answers(q)[answer])
		q.Add("broken")
		time.Sleep(3 * time.Millisecond) // No add and no sync are at the same moment.
		for range 20 {
			if q.Len() == 0 { // Else it waits already.
				added = time.Now()
			}
			q.Add("fine")
			time.Sleep(500 * time.Millisecond)
		}
		q.ShutDown()
		synctest.Wait()
		time.Sleep(time.Minute)
	})
	return s
}

// TestChapter08Failed compares the four answers.
func TestChapter08Failed(t *testing.T) {
	names := []string{"forget it", "add it at once", "sleep, then add it", "add it after a backoff"}
	table := "| a key that failed | calls of `broken` | `broken` is right after | longest wait of `fine` |\n" +
		"|---|---|---|---|\n"
	chart := figure.TimeChart{
		Title: "Four answers to a key that failed",
		Desc: "One worker and two keys over ten seconds. Forgotten, broken is called once. Added at once, it " +
			"is called all the time. With a sleep, fine waits for seconds. With a backoff, broken is called ever " +
			"more seldom and fine does not wait.",
		Until: 10, Step: 1, Unit: "s",
	}
	for n, name := range names {
		s := tell(t, n)
		right, class := "never", figure.Bad
		if s.mended > 0 {
			right, class = s.mended.Round(time.Millisecond).String(), figure.Plain
		}
		if n == 3 {
			class = figure.Good
		}
		table += fmt.Sprintf("| %s | %d | %s | %v |\n", name, len(s.calls), right, s.longest.Round(time.Millisecond))
		calls := make([]figure.Mark, len(s.calls))
		for i, at := range s.calls {
			calls[i] = figure.Mark{At: at.Seconds(), Class: figure.Lit}
		}
		var waits []figure.Span
		for _, span := range s.waits {
			if span.To-span.From > 0.1 { // Others are too short to be seen.
				waits = append(waits, span)
			}
		}
		chart.Panels = append(chart.Panels, figure.Panel{
			Heading: name, Remark: fmt.Sprintf("%d calls, right after: %s", len(s.calls), right), RemarkClass: class,
			Lanes: []figure.Lane{{Name: "broken", Marks: calls}, {Name: "fine waits", Spans: waits}},
		})
	}
	book.Block(t, page, table)
	book.Figure(t, "08-failed", chart.Draw())
}
