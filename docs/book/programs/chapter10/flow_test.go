package chapter10

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/internal/trace"
)

// A happening is an event of the run, and what the controller made of it.
type happening struct {
	what string
	keys []string // the Services that the handler queued
	runs []int    // the reconciles that it was a cause of
}

// A run is a reconcile and what it wrote.
type run struct{ key, wrote string }

// flow returns the events that handlers of the controller were called with, and the reconciles that followed.
func (c *cluster) flow() (events []happening, runs []run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := map[string]int{} // the position of an event, by its object and version
	wrote := map[string]string{}
	waiting := map[string][]int{} // the events whose reconcile was put off, by its key
	for i := range c.steps {
		s := &c.steps[i]
		switch {
		case s.Kind == trace.Handled && s.Other.Controller == endpoints.Name:
			h := happening{what: s.of.Resource + " " + s.of.Name + " " + s.Event}
			for _, k := range c.keys(s) {
				h.keys = append(h.keys, k.Name)
			}
			at[s.of.Key()+" "+s.Version] = len(events)
			events = append(events, h)
		case s.Kind == trace.Wrote && s.of.Resource == "endpoints":
			wrote[s.of.Name] = s.Event
		case s.Kind == trace.Ran:
			causes := waiting[s.of.Name]
			for _, cause := range s.Causes {
				if n, found := at[causeKey(cause)]; found && !slices.Contains(causes, n) {
					causes = append(causes, n)
				}
			}
			if waiting[s.of.Name] = causes; s.Outcome == "stale" {
				continue
			}
			delete(waiting, s.of.Name)
			for _, n := range causes {
				events[n].runs = append(events[n].runs, len(runs))
			}
			runs = append(runs, run{s.of.Name, wrote[s.of.Name]})
			delete(wrote, s.of.Name)
		}
	}
	for _, e := range events { // Two workers may end at one time.
		if r := e.runs; len(r) == 2 && runs[r[0]].key > runs[r[1]].key {
			runs[r[0]], runs[r[1]] = runs[r[1]], runs[r[0]]
		}
	}
	return events, runs
}

// keys returns what a handler queued. A listener is called before that.
func (c *cluster) keys(s *step) []trace.Key {
	all, _ := c.recorder.Steps(s.of)
	for i := range all {
		if all[i].Number == s.Number {
			return all[i].Keys
		}
	}
	return nil
}

func causeKey(c trace.Cause) string { return c.Object + " " + c.ResourceVersion }

// TestChapter10Flow draws what the real controller does with eleven events.
func TestChapter10Flow(t *testing.T) {
	var events []happening
	var runs []run
	said := []string{
		"Service web: added", "Endpoints web: added", "Pod web-1: ready", "Endpoints web: updated",
		"Pod web-1: annotated", "Pod web-2: ready", "Pod web-3: ready", "Pod web-4: ready", "Endpoints web: updated",
		"Pod web-1: app=api",
		"Endpoints web: deleted",
	}
	inCluster(t, weather{write: 25 * time.Millisecond, late: 3 * time.Millisecond}, theReal, func(c *cluster) {
		c.start()
		_, err := c.Client().CoreV1().Services("default").Create(c.t.Context(), service("web"), metav1.CreateOptions{})
		c.must(err)
		c.settle()
		c.report("web-1", serving("10.0.0.1", true))
		c.settle()
		c.patch("web-1", `{"metadata":{"annotations":{"note":"x"}}}`)
		c.settle()
		for n := 2; n <= 4; n++ {
			c.report(fmt.Sprintf("web-%d", n), serving(fmt.Sprintf("10.0.0.%d", n), true))
			time.Sleep(10 * time.Millisecond)
		}
		c.settle()
		c.patch("web-1", `{"metadata":{"labels":{"app":"api"}}}`)
		c.settle()
		c.must(c.Client().CoreV1().Endpoints("default").Delete(c.t.Context(), "web", metav1.DeleteOptions{}))
		c.settle()
		events, runs = c.flow()
		if ready, _, _ := c.endpoints("web"); len(ready) != 3 {
			t.Errorf("in the end web has the addresses %v", ready)
		}
	}, service("api"), pod("web", 1), pod("web", 2), pod("web", 3), pod("web", 4))
	// The controller hears of its own writes, too. The figure shows the first two of these events, and those that wake
	// a reconcile.
	own := 0
	events = slices.DeleteFunc(events, func(h happening) bool {
		if !strings.HasPrefix(h.what, "endpoints ") || len(h.keys) > 0 {
			return false
		}
		own++
		return own > 2
	})
	if len(events) != len(said) {
		t.Fatalf("%d events, want %d: %v", len(events), len(said), events)
	}
	for n, h := range events {
		if !strings.Contains(strings.ToLower(said[n]), strings.Fields(h.what)[1]) {
			t.Errorf("event %d is %q, the figure says %q", n, h.what, said[n])
		}
		events[n].what = said[n]
	}
	book.Figure(t, "endpoints-flow", drawFlow(events, runs))
}

// drawFlow draws each event as a row: what was heard, which keys that became, which reconcile served it, and what that
// wrote.
func drawFlow(events []happening, runs []run) *figure.Figure {
	const top, row, h = 118.0, 38.0, 26.0
	f := figure.New("What the Endpoints controller does with eleven events",
		"Events of Services, Pods and Endpoints come in. A handler turns each into keys of Services, or into none. "+
			"The queue merges equal keys. syncHandler reconciles each key and writes the Endpoints.",
		figure.Width, top+row*float64(len(events))+16)
	columns := []struct {
		x, w       float64
		name, does string
	}{
		{20, 160, "informers", "what has changed"},
		{226, 116, "handlers", "which Services?"},
		{384, 138, "syncHandler", "observe, plan, apply"},
		{568, 132, "API server", "Endpoints"},
	}
	labels := []string{"events", "queue", "write"}
	for n, c := range columns {
		f.Box(c.x, 30, c.w, 54, figure.Plain, c.name, c.does)
		if n > 0 {
			before := columns[n-1]
			f.Arrow(figure.Plain, figure.Point{X: before.x + before.w + 4, Y: 57}, figure.Point{X: c.x - 4, Y: 57})
			f.Middle((before.x+before.w+c.x)/2, 48, labels[n-1], "small", figure.Muted)
		}
	}
	y := func(n int) float64 { return top + row*float64(n) }
	classOf := func(key string) figure.Class {
		if key == "web" {
			return figure.A
		}
		return figure.C
	}
	rows := make(map[int][]float64) // the middles of the rows that each run served
	events, runs = slices.Clone(events), slices.Clone(runs)
	for n, e := range events {
		class := figure.Plain
		if len(e.keys) == 0 {
			class = figure.Muted
		}
		f.Rect(columns[0].x, y(n), columns[0].w, h, class)
		f.Middle(columns[0].x+columns[0].w/2, y(n)+17, e.what, "small", class)
		f.Arrow(class, figure.Point{X: columns[0].x + columns[0].w + 4, Y: y(n) + h/2},
			figure.Point{X: columns[1].x - 4, Y: y(n) + h/2})
		if len(e.keys) == 0 {
			f.Middle(columns[1].x+columns[1].w/2, y(n)+17, "no key", "small", figure.Muted)
			continue
		}
		width := columns[1].w / float64(len(e.keys))
		for i, key := range e.keys {
			f.Rect(columns[1].x+width*float64(i)+1, y(n), width-2, h, classOf(key))
			f.Middle(columns[1].x+width*(float64(i)+0.5), y(n)+17, key, "code", classOf(key))
		}
		for i, r := range e.runs {
			rows[r] = append(rows[r], y(n)+h/2+float64(i*2-len(e.runs)+1)*9*min(1, float64(len(e.runs)-1)))
		}
	}
	for r, run := range runs {
		at := rows[r]
		if len(at) == 0 {
			continue
		}
		middle, height := 0.0, h
		for _, y := range at {
			middle += y / float64(len(at))
		}
		if slices.ContainsFunc(events, func(e happening) bool { return len(e.runs) == 2 && has(e, r) }) {
			height = 16 // two in one row
		}
		for _, y := range at {
			f.Arrow(classOf(run.key), figure.Point{X: columns[1].x + columns[1].w + 4, Y: y},
				figure.Point{X: columns[2].x - 4, Y: middle})
		}
		f.Rect(columns[2].x, middle-height/2, columns[2].w, height, classOf(run.key))
		f.Middle(columns[2].x+columns[2].w/2, middle+4, "reconcile "+run.key, "code", classOf(run.key))
		f.Arrow(figure.Plain, figure.Point{X: columns[2].x + columns[2].w + 4, Y: middle},
			figure.Point{X: columns[3].x - 4, Y: middle})
		if run.wrote == "" {
			f.Middle(columns[3].x+columns[3].w/2, middle+4, "no write", "small", figure.Muted)
			continue
		}
		f.Rect(columns[3].x, middle-height/2, columns[3].w, height, figure.Lit)
		f.Middle(columns[3].x+columns[3].w/2, middle+4, run.wrote+" "+run.key, "code", figure.Lit)
	}
	return f
}

// has reports whether the event is a cause of the reconcile.
func has(e happening, r int) bool { return slices.Contains(e.runs, r) }

// TestChapter10Events lists which changes of a Pod queue which Services.
func TestChapter10Events(t *testing.T) {
	table := "| what becomes of the Pod `web-1` | keys |\n|---|---|\n"
	inCluster(t, weather{}, theReal, func(c *cluster) {
		try := func(what, want string, f func()) {
			c.start()
			f()
			c.settle()
			events, _ := c.flow()
			keys := []string{}
			for _, e := range events {
				if strings.HasPrefix(e.what, "pods ") {
					keys = append(keys, e.keys...)
				}
			}
			got := "none"
			if len(keys) > 0 {
				got = "`" + strings.Join(keys, "`, `") + "`"
			}
			if got != want {
				t.Errorf("%s: keys %s, want %s", what, got, want)
			}
			table += fmt.Sprintf("| %s | %s |\n", what, got)
		}
		try("it gets an address", "`web`", func() { c.report("web-1", serving("10.0.0.1", false)) })
		try("it becomes ready", "`web`", func() { c.report("web-1", serving("10.0.0.1", true)) })
		try("it gets an annotation", "none", func() { c.patch("web-1", `{"metadata":{"annotations":{"a":"b"}}}`) })
		try("it gets a label that nobody selects", "none",
			func() { c.patch("web-1", `{"metadata":{"labels":{"color":"red"}}}`) })
		try("its container restarts, and it stays ready", "none", func() {
			c.report("web-1", func(p *corev1.Pod) {
				serving("10.0.0.1", true)(p)
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: 1}}
			})
		})
		try("its label becomes `app=api`", "`api`, `web`",
			func() { c.patch("web-1", `{"metadata":{"labels":{"app":"api"}}}`) })
		try("it is being deleted, and then it is gone", "`api`, `api`", func() { c.deletePod("web-1") })
	}, service("web"), service("api"), pod("web", 1))
	book.Block(t, page, table)
}
