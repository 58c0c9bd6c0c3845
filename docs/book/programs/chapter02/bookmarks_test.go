package chapter02

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/localapi"
)

// A sample is how far everybody is at one time.
type sample struct {
	newest, kept    int
	without, marked int // where a watch without bookmarks would begin, and one with
}

// A quiet client watches Pods, of which none ever changes, in watches of eight minutes and some seconds, so that
// nothing happens at the moment of something else. After each it begins where it
// was, or with a list if that is gone.
type quiet struct {
	client
	bookmarks bool
	say       func(string)

	mu       sync.Mutex
	position string
	lists    int
}

func (q *quiet) at() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, _ := strconv.Atoi(q.position)
	return n
}

func (q *quiet) move(to string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.position = to
}

func (q *quiet) run(ctx context.Context) {
	for gone := true; ctx.Err() == nil; {
		if gone {
			all, err := q.list(ctx, query(""))
			if err != nil {
				return
			}
			q.lists++
			q.move(all.Metadata.ResourceVersion)
			q.say(fmt.Sprintf("list: version %s", q.position))
		}
		q.say(fmt.Sprintf("watch from %s", q.position))
		parameters := query(fmt.Sprintf("timeoutSeconds=488&allowWatchBookmarks=%v", q.bookmarks))
		parameters.Set("resourceVersion", q.position)
		err := q.watch(ctx, parameters, func(e event) { q.move(e.Object.Metadata.ResourceVersion) })
		if gone = errors.Is(err, errGone); gone {
			q.say("410 Gone")
		}
	}
}

// has reports whether the server still has the history after a version.
func (w *world) has(version int) bool {
	_, err := w.client("pods").list(w.t.Context(),
		query(fmt.Sprintf("resourceVersionMatch=Exact&resourceVersion=%d", version)))
	if err != nil && !errors.Is(err, errGone) {
		w.t.Fatal(err)
	}
	return err == nil
}

// TestChapter02Bookmarks: without bookmarks, a watch of what does not change is soon too old to be resumed.
func TestChapter02Bookmarks(t *testing.T) {
	const minutes = 30
	var samples []sample
	var lists [2]int
	trace := inWorld(t, localapi.Options{HistoryLimit: 12}, func(w *world) {
		w.create("web-1", "web")
		ctx, cancel := context.WithCancel(w.t.Context())
		began := time.Now()
		var mu sync.Mutex // guards the trace
		clients := [2]*quiet{}
		var ended sync.WaitGroup
		for i, name := range []string{"without", "with   "} {
			clients[i] = &quiet{client: w.client("pods"), bookmarks: i == 1, say: func(what string) {
				mu.Lock()
				defer mu.Unlock()
				w.say("%2.0fm %s  %s", time.Since(began).Minutes(), name, what)
			}}
			ended.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				clients[i].run(ctx)
			})
		}
		time.Sleep(5 * time.Second)
		kept := clients[0].at()
		for tick := range minutes * 4 { // of 15 seconds
			version, err := strconv.Atoi(w.setting(fmt.Sprint(tick)))
			w.must(err)
			for ; !w.has(kept); kept++ {
			}
			samples = append(samples, sample{version, kept, clients[0].at(), clients[1].at()})
			time.Sleep(15 * time.Second)
		}
		cancel()
		ended.Wait()
		lists = [2]int{clients[0].lists, clients[1].lists}
	})
	if lists[0] != 4 || lists[1] != 1 {
		t.Errorf("%d lists without bookmarks, %d with", lists[0], lists[1])
	}
	book.Trace(t, page, trace)
	book.Figure(t, "02-bookmarks", drawSamples(samples))
}

// drawSamples draws how far everybody is over time.
func drawSamples(samples []sample) *figure.Figure {
	const left, top, width, height, perMinute = 60.0, 34.0, 630.0, 210.0, 4
	first, last := samples[0].without-4, samples[len(samples)-1].newest
	f := figure.New("The positions of two watches", fmt.Sprintf("Resource versions over %d minutes. The newest "+
		"version rises from %d to %d. The server forgets what is older than some minutes. A watch without bookmarks "+
		"stays where it was, falls behind what is kept, and has to list anew three times. One with bookmarks follows "+
		"the newest version.", len(samples)/perMinute, samples[0].newest, last), figure.Width, top+height+62)
	x := func(i int) float64 { return left + width*float64(i)/float64(len(samples)) }
	y := func(version int) float64 {
		return top + height*(1-float64(max(version, first)-first)/float64(last-first))
	}
	for version := (first + 24) / 25 * 25; version <= last; version += 25 {
		f.Line(figure.Point{X: left, Y: y(version)}, figure.Point{X: left + width, Y: y(version)}, figure.Muted)
		f.End(left-8, y(version)+4, fmt.Sprint(version), "small", figure.Muted)
	}
	for minute := 0; minute <= len(samples)/perMinute; minute += 5 {
		f.Middle(x(minute*perMinute), top+height+18, fmt.Sprintf("%d min", minute), "small", figure.Muted)
	}
	f.Text(left-44, top-14, "resource version", "small", figure.Muted)
	steps := func(of func(sample) int) []figure.Point {
		points := []figure.Point{{X: x(0), Y: y(of(samples[0]))}}
		for i, s := range samples {
			if last := points[len(points)-1]; last.Y != y(of(s)) {
				points = append(points, figure.Point{X: x(i), Y: last.Y}, figure.Point{X: x(i), Y: y(of(s))})
			}
		}
		return append(points, figure.Point{X: left + width, Y: points[len(points)-1].Y})
	}
	forgotten := append(steps(func(s sample) int { return s.kept }),
		figure.Point{X: left + width, Y: top + height}, figure.Point{X: left, Y: top + height})
	f.Area(figure.Plain, forgotten...)
	for _, l := range []struct {
		of    func(sample) int
		class figure.Class
	}{
		{func(s sample) int { return s.newest }, figure.A},
		{func(s sample) int { return s.without }, figure.Bad},
		{func(s sample) int { return s.marked }, figure.Good},
	} {
		points := steps(l.of)
		for i := range points[1:] {
			f.Line(points[i], points[i+1], l.class)
			if points[i].Y == points[i+1].Y && l.class != figure.A {
				f.Rect(points[i].X, points[i].Y-1.5, points[i+1].X-points[i].X, 3, l.class)
			}
		}
	}
	for i, entry := range []struct {
		name  string
		class figure.Class
	}{
		{"newest", figure.A},
		{"without bookmarks", figure.Bad},
		{"with bookmarks", figure.Good},
		{"forgotten", figure.Plain},
	} {
		at := left + 160*float64(i)
		f.Rect(at, top+height+36, 18, 8, entry.class)
		f.Text(at+26, top+height+44, entry.name, "small", entry.class)
	}
	return f
}
