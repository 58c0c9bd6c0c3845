package chapter07

import (
	"context"
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

const page = "07-workqueue"

// A design is a queue as the chapter's first half sees it.
type design interface {
	Add(key string)
	Get() string
	Done(key string)
}

// ours is the framework's queue as a design.
type ours struct{ *workqueue.Queue[string] }

func (q ours) Get() string {
	item, err := q.Queue.Get(context.Background())
	if err != nil {
		return "" // shut down
	}
	return item.Key
}

// An event is a line of a trace.
type event struct {
	at   time.Duration
	text string
}

// A story is what happened in one run of the scenario.
type story struct {
	events     []event
	workers    [2][]figure.Span
	adds       []figure.Mark
	have, want int
	runs       int
}

// tell runs the scenario. Somebody asks for 1, then 2, then 3 copies of "web", a second apart. Two workers make it so.
// The first run meets a slow server and takes 4 s; the others take 1 s.
func tell(t *testing.T, make func() (q design, stop func())) (s story) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		q, stop := make()
		var mu sync.Mutex
		began := time.Now()
		note := func(format string, args ...any) {
			s.events = append(s.events, event{time.Since(began), fmt.Sprintf(format, args...)})
		}
		working := 0
		names := 0
		for range s.workers {
			go func() {
				name := 0 // Workers are numbered in the order in which they get a key.
				for {
					key := q.Get()
					if key == "" {
						return
					}
					mu.Lock()
					if name == 0 {
						names++
						name = names
					}
					s.runs++
					working++
					wanted, takes := s.want, time.Second
					if s.runs == 1 {
						takes = 4 * time.Second
					}
					class, both := figure.A, ""
					if working > 1 {
						class, both = figure.Bad, " while the other is still at it"
					}
					from := time.Since(began)
					note("worker %d begins %s%s: the goal is %d", name, key, both, wanted)
					mu.Unlock()

					time.Sleep(takes)
					mu.Lock()
					working--
					s.have = wanted
					note("worker %d sets %s to %d", name, key, wanted)
					s.workers[name-1] = append(s.workers[name-1], figure.Span{
						From: from.Seconds(), To: time.Since(began).Seconds(), Class: class,
						Label: fmt.Sprintf("sets %d", wanted),
					})
					q.Done(key)
					mu.Unlock()
					time.Sleep(time.Nanosecond) // A worker that waits comes first.
				}
			}()
		}
		for goal := 1; goal <= 3; goal++ {
			synctest.Wait()
			mu.Lock()
			s.want = goal
			note("the goal becomes %d: Add(web)", goal)
			s.adds = append(s.adds, figure.Mark{
				At: time.Since(began).Seconds(), Label: fmt.Sprintf("goal %d", goal), Class: figure.Lit,
			})
			mu.Unlock()
			q.Add("web")
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		stop()
	})
	return s
}

// String is the trace.
func (s story) String() string {
	var b strings.Builder
	for _, e := range s.events {
		fmt.Fprintf(&b, "%3v  %s\n", e.at.Truncate(time.Millisecond), e.text)
	}
	fmt.Fprintf(&b, "end  web is %d, the goal is %d, after %d run(s)\n", s.have, s.want, s.runs)
	return b.String()
}

func (s story) panel(heading string) figure.Panel {
	remark, class := fmt.Sprintf("ends with %d instead of %d", s.have, s.want), figure.Bad
	if s.have == s.want {
		remark, class = fmt.Sprintf("ends with %d, in %d runs", s.have, s.runs), figure.Good
	}
	return figure.Panel{Heading: heading, Remark: remark, RemarkClass: class, Lanes: []figure.Lane{
		{Name: "adds", Marks: s.adds},
		{Name: "worker 1", Spans: s.workers[0]},
		{Name: "worker 2", Spans: s.workers[1]},
	}}
}

// stories runs the scenario with each design.
func stories(t *testing.T) (channel, set, strict, real story) {
	channel = tell(t, func() (design, func()) {
		q := make(channelQueue, 100)
		return q, func() { close(q) }
	})
	set = tell(t, func() (design, func()) {
		q := newSetQueue()
		return q, func() { end(q) }
	})
	strict = tell(t, func() (design, func()) {
		q := strictSetQueue{newSetQueue()}
		return q, func() { end(q) }
	})
	real = tell(t, func() (design, func()) {
		q := ours{workqueue.New(workqueue.Options[string]{})}
		return q, q.ShutDown
	})
	return channel, set, strict, real
}

// end sends each worker an empty key, which ends it.
func end(q design) {
	for range 2 {
		q.Add("")
		synctest.Wait()
		q.Done("")
	}
}

func TestChapter07Channel(t *testing.T) {
	channel, _, _, _ := stories(t)
	if channel.have == channel.want {
		t.Error("the channel came to the right end")
	}
	book.Trace(t, page, channel.String())
}

func TestChapter07StrictSet(t *testing.T) {
	_, _, strict, _ := stories(t)
	if strict.have == strict.want {
		t.Error("the strict set came to the right end")
	}
	book.Trace(t, page, strict.String())
}

func TestChapter07Dirty(t *testing.T) {
	_, _, _, real := stories(t)
	if real.have != real.want {
		t.Error("our queue did not come to the right end")
	}
	book.Trace(t, page, real.String())
}

func TestChapter07Designs(t *testing.T) {
	channel, set, strict, real := stories(t)
	book.Figure(t, "07-designs", figure.TimeChart{
		Title: "Four designs of a queue",
		Desc: "The same three changes with each of four queues. With a channel and with a set, two workers hold " +
			"one key at once and the older one writes last. With a set that keeps a key until it is done, two " +
			"changes are lost. With a dirty set and a processing set the last goal is reached in two runs.",
		Until: 6, Step: 1, Unit: " s",
		Panels: []figure.Panel{
			channel.panel("1  a channel"),
			set.panel("2  a set of the keys that wait"),
			strict.panel("3  a set of the keys that wait or are worked on"),
			real.panel("4  dirty and processing"),
		},
	}.Draw())
}
