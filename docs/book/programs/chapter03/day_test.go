package chapter03

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// The mishaps of the bad hour.
const (
	awayFrom, awayUntil = 12 * time.Minute, 12*time.Minute + 30*time.Second
	forgets             = 25 * time.Minute
	silentFrom          = 38 * time.Minute
	hour                = time.Hour
)

// badHour is an hour of a server: a Pod changes every minute. The server is away for half a minute. Later it ends its
// watches and forgets its history. And one connection dies without a word.
func badHour(w *world, follow func(ctx context.Context)) {
	w.verdict = func(a *ask) gate.Verdict {
		if a.at >= awayFrom && a.at < awayUntil {
			a.answer = "broken"
			return gate.Verdict{Action: gate.Drop}
		}
		return gate.Verdict{}
	}
	w.frame = func(ctx context.Context, a *ask) gate.Verdict {
		now := w.since()
		switch {
		case now >= silentFrom && a.at < silentFrom:
			<-ctx.Done()
		case now >= forgets && a.at < forgets, now >= awayFrom && a.at < awayFrom:
			return gate.Verdict{Action: gate.Truncate}
		}
		return gate.Verdict{}
	}
	ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), klog.Logger{}))
	done := make(chan struct{}) // closed when the follower has ended
	go func() { defer close(done); follow(ctx) }()
	for minute := range 60 {
		at := time.Duration(minute) * time.Minute
		if at != awayFrom && at != forgets && at != silentFrom {
			at += time.Second // Only a mishap meets a change.
		}
		time.Sleep(time.Until(w.began.Add(at)))
		w.write()
		if at == forgets {
			synctest.Wait() // The watch is cut.
			w.write()       // The follower misses this one.
			if err := w.Compact(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	time.Sleep(time.Until(w.began.Add(hour)))
	cancel()
	<-done
	synctest.Wait() // The server knows.
}

// behind returns the times in which the follower had not seen all that was written.
func (w *world) behind() (spans [][2]time.Duration) {
	for _, write := range w.writes {
		until := hour
		for _, s := range w.seen {
			if s.version >= write.version {
				until = max(s.at, write.at)
				break
			}
		}
		switch {
		case until-write.at < time.Second: // on its way
		case len(spans) > 0 && write.at <= spans[len(spans)-1][1]:
			spans[len(spans)-1][1] = max(spans[len(spans)-1][1], until)
		default:
			spans = append(spans, [2]time.Duration{write.at, until})
		}
	}
	return spans
}

// A design is a way to follow the server.
type design struct {
	name   string
	follow func(w *world) func(ctx context.Context)
}

func designs() []design {
	anew := func(pause time.Duration) func(w *world) func(ctx context.Context) {
		return func(w *world) func(ctx context.Context) {
			return (&naive{server: lister(w.t, w.RESTConfig(), nil), mirror: w.copy(), pause: pause}).run
		}
	}
	return []design{
		{"begin anew at once", anew(0)},
		{"begin anew after a second", anew(time.Second)},
		{"the reflector", func(w *world) func(ctx context.Context) {
			return func(ctx context.Context) {
				reflect(ctx, lister(w.t, w.RESTConfig(), nil), seeded(1), w.copy())
			}
		}},
	}
}

// TestChapter03Hour compares the designs in a bad hour.
func TestChapter03Hour(t *testing.T) {
	table := "| design | full lists | requests while the server is away | the copy is behind for |\n|---|---|---|---|\n"
	chart := figure.TimeChart{
		Title: "A bad hour", Until: 60, Step: 10, Unit: "m",
		Desc: "Three designs in one hour. The server is away at 12 minutes, forgets its history at 25, and a " +
			"connection dies at 38. Two designs list after the end of each watch, and their copies are behind from " +
			"38 minutes on. The reflector lists twice, and notices that the connection is dead.",
	}
	var lists, away []int
	var behind []time.Duration
	for _, d := range designs() {
		inWorld(t, func(w *world) {
			badHour(w, d.follow(w))
			listed := figure.Lane{Name: "full list"}
			watches, late := figure.Lane{Name: "watch"}, figure.Lane{Name: "behind"}
			full, asked := 0, 0
			for _, a := range w.asks {
				if strings.HasPrefix(a.what, "list") && a.answer == "200" {
					full++
					listed.Spans = append(listed.Spans,
						figure.Span{From: a.at.Minutes(), To: a.at.Minutes() + 0.6, Class: figure.Lit})
				}
				if a.at >= awayFrom && a.at < awayUntil {
					asked++
				}
				if a.ended-a.opened > 5*time.Second {
					class := figure.Good
					if a.opened < silentFrom && a.ended > silentFrom {
						class = figure.Plain // It is dead, at least in part.
					}
					watches.Spans = append(watches.Spans,
						figure.Span{From: a.opened.Minutes(), To: a.ended.Minutes(), Class: class})
				}
			}
			var sum time.Duration
			for _, s := range w.behind() {
				sum += s[1] - s[0]
				late.Spans = append(late.Spans,
					figure.Span{From: s[0].Minutes(), To: max(s[1].Minutes(), s[0].Minutes()+0.4), Class: figure.Bad})
			}
			lists, away, behind = append(lists, full), append(away, asked), append(behind, sum.Truncate(time.Second))
			table += fmt.Sprintf("| %s | %d | %d | %v |\n", d.name, full, asked, sum.Truncate(time.Second))
			chart.Panels = append(chart.Panels, figure.Panel{
				Heading: d.name, Remark: fmt.Sprintf("%d full lists", full), RemarkClass: figure.Muted,
				Lanes: []figure.Lane{listed, watches, late},
			})
		})
	}
	if lists[0] < 8 || lists[2] != 2 || away[0] < 1000 || away[2] > 10 || behind[1] < 20*time.Minute ||
		behind[2] > 3*time.Minute {
		t.Errorf("the designs differ in another way than the chapter says:\n%s", table)
	}
	book.Block(t, page, table)
	book.Figure(t, "03-hour", chart.Draw())
}

// TestChapter03Requests shows what the reflector asks for in the bad hour.
func TestChapter03Requests(t *testing.T) {
	inWorld(t, func(w *world) {
		badHour(w, designs()[2].follow(w))
		var b strings.Builder
		for _, a := range w.asks {
			fmt.Fprintf(&b, "%-8s  %-31s", clock(a.at), a.what)
			switch {
			case a.answer == "broken":
				b.WriteString("no answer")
			case a.verb == "list":
				b.WriteString(a.answer)
			case a.ended-a.opened < time.Second:
				b.WriteString("410 in its first line")
			default:
				fmt.Fprintf(&b, "until %s", clock(a.ended))
			}
			b.WriteString("\n")
		}
		if !strings.Contains(b.String(), "410") {
			t.Error("no watch was answered with 410")
		}
		book.Trace(t, page, b.String())
	})
}

// TestChapter03Log shows the log of the bad hour.
func TestChapter03Log(t *testing.T) {
	inWorld(t, func(w *world) {
		log := ktesting.NewLogger(ktesting.NopTL{},
			ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
		follow := designs()[2].follow(w)
		badHour(w, func(ctx context.Context) { follow(klog.NewContext(ctx, log)) })
		text := log.GetSink().(ktesting.Underlier).GetBuffer().String()
		if !strings.Contains(text, "API server is unavailable") || !strings.Contains(text, "available again") {
			t.Errorf("the log does not tell of the outage:\n%s", text)
		}
		book.Trace(t, page, text)
	})
}
