package chapter11

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/internal/trace"
)

// A pass is a reconcile of the Deployment.
type pass struct {
	events []happening
	plan   []string
	writes []string
	first  int // the number of the first write
}

// A happening is an event that a sync was called for.
type happening struct {
	what  string
	write int // the number of the write that it shows; 0: it is the work of somebody else
}

// A step is something that happened to an object or a key.
type step struct {
	of trace.Subject
	trace.Step
}

// steps returns what the manager did with the Deployment and its ReplicaSets, in order.
func (c *cluster) steps() (all []step) {
	subjects := []trace.Subject{
		{Resource: "deployments.apps", Namespace: "default", Name: "web"},
		{Controller: deployment.Name, Namespace: "default", Name: "web"},
	}
	for _, rs := range c.sets() {
		subjects = append(subjects, trace.Subject{Resource: "replicasets.apps", Namespace: "default", Name: rs.Name})
	}
	for _, s := range subjects {
		steps, _ := c.inspector.Recorder().Steps(s)
		for _, of := range steps {
			if of.Kind != trace.Wrote || s.Controller != "" { // A write is a step of both.
				all = append(all, step{s, of})
			}
		}
	}
	slices.SortFunc(all, func(a, b step) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// passes returns the reconciles among the steps, with what led to them and what they did. images has the version of
// each ReplicaSet.
func passes(steps []step, images map[string]string) (all []pass) {
	what, wroteBy, number := map[string]string{}, map[string]int{}, 0
	runs := map[uint64]*pass{}
	of := func(run uint64) *pass {
		if runs[run] == nil {
			runs[run] = &pass{}
		}
		return runs[run]
	}
	for _, s := range steps {
		switch s.Kind {
		case trace.Changed:
			what[s.Version] = describeChange(s, images)
		case trace.Logged:
			if text, ok := strings.CutPrefix(s.Text, "Step step="); ok {
				of(s.Run).plan = append(of(s.Run).plan, shorten(text, images))
			}
		case trace.Wrote:
			number++
			wroteBy[s.Version] = number
			r := of(s.Run)
			r.first = cmp.Or(r.first, number)
			r.writes = append(r.writes, s.Event+" "+cmp.Or(s.Text, "ReplicaSet"))
		}
	}
	var waiting []happening // Their sync was put off, because the cache lacked a write.
	for _, s := range steps {
		if s.Kind != trace.Ran {
			continue
		}
		r := of(s.Run)
		r.events, waiting = waiting, nil
		for _, c := range s.Causes {
			if text, ok := what[c.ResourceVersion]; ok {
				r.events = append(r.events, happening{text, wroteBy[c.ResourceVersion]})
			}
		}
		if s.Outcome == "stale" {
			waiting = r.events
			continue
		}
		all = append(all, *r)
	}
	return all
}

// describeChange says what is new in a Deployment or a ReplicaSet.
func describeChange(s step, images map[string]string) string {
	image := images[s.of.Name]
	switch now := s.New.(type) {
	case *appsv1.Deployment:
		if s.Old.(*appsv1.Deployment).Generation == now.Generation {
			return "Deployment: its status"
		}
		return "Deployment: wants " + now.Spec.Template.Spec.Containers[0].Image
	case *appsv1.ReplicaSet:
		was := s.Old.(*appsv1.ReplicaSet)
		switch {
		case *was.Spec.Replicas != *now.Spec.Replicas:
			return fmt.Sprintf("%s: size %d", image, *now.Spec.Replicas)
		case was.Status.AvailableReplicas < now.Status.AvailableReplicas:
			return fmt.Sprintf("%s: its Pod is available", image)
		case now.Status.Replicas == 0:
			return fmt.Sprintf("%s: its Pod is gone", image)
		}
		return fmt.Sprintf("%s: it has a Pod", image)
	}
	return image + ": is there" // A new object has no state in the trace.
}

// shorten says of a step of a plan what the figure shows of it.
func shorten(text string, images map[string]string) string {
	words := strings.Fields(text)
	if words[0] == "status" {
		return "write the status"
	}
	return fmt.Sprintf("%s %s, size %s", words[0], images[words[1]], strings.TrimPrefix(words[2], "replicas="))
}

// TestChapter11Flow draws a whole rollout of one Pod: each sync with its events, its plan and its writes.
func TestChapter11Flow(t *testing.T) {
	inCluster(t, justDeployment, func(c *cluster) {
		c.create(web(1, "1", "0"))
		steps := c.steps()
		before := steps[len(steps)-1].Number
		c.mu.Lock()
		c.late = 100 * time.Microsecond // So no event comes at the moment at which a sync ends.
		c.mu.Unlock()
		c.roll(func() { c.image("web:2") })
		images := map[string]string{}
		for _, rs := range c.sets() {
			images[rs.Name] = imageOf(&rs)
		}
		steps = slices.DeleteFunc(c.steps(), func(s step) bool { return s.Number <= before })
		all := passes(steps, images)
		seen, written := map[int]bool{}, 0
		for _, s := range all {
			written += len(s.writes)
			for _, e := range s.events {
				seen[e.write] = true
			}
			t.Logf("%+v", s)
		}
		for n := range written {
			if !seen[n+1] {
				t.Errorf("no sync was called for the event of write %d", n+1)
			}
		}
		if last := all[len(all)-1]; len(last.plan) > 0 {
			t.Errorf("the last sync plans %q", last.plan)
		}
		book.Figure(t, "deployment-flow", drawFlow(all))
	})
}

// drawFlow draws each sync as a row: the events that it was called for, its plan, and its writes, which are numbered.
// An event that shows a write has the number of that write.
func drawFlow(all []pass) *figure.Figure {
	const top, line, gap, tall = 110.0, 26.0, 12.0, 22.0
	height := func(s pass) float64 { return line * float64(max(1, len(s.events), len(s.plan), len(s.writes))) }
	bottom := top + 6
	for _, s := range all {
		bottom += height(s) + gap
	}
	f := figure.New("A rollout of one Pod, from its first event to its last",
		"Each row is a sync of the Deployment: the events that it was called for, its plan, and the writes that it "+
			"sent. Each write comes back as an event of a later row.", figure.Width, bottom)
	columns := []struct {
		x, w              float64
		name, does, arrow string
	}{
		{20, 196, "informers", "what has changed", ""},
		{266, 70, "queue", "which key", "events"},
		{374, 140, "plan", "what to do", "key"},
		{556, 144, "API server", "the writes", "apply"},
	}
	arrow := func(n int, from, to float64) { // to column n
		before := columns[n-1]
		f.Arrow(figure.Plain, figure.Point{X: before.x + before.w + 4, Y: from},
			figure.Point{X: columns[n].x - 4, Y: to})
	}
	for n, c := range columns {
		f.Box(c.x, 24, c.w, 54, figure.Plain, c.name, c.does)
		if n > 0 {
			arrow(n, 51, 51)
			f.Middle((columns[n-1].x+columns[n-1].w+c.x)/2, 42, c.arrow, "small", figure.Muted)
		}
	}
	y := top
	for _, s := range all {
		middle := y + height(s)/2
		at := func(i, of int) float64 { return middle + line*(float64(i)-float64(of-1)/2) }
		for i, e := range s.events {
			class, own := figure.A, at(i, len(s.events))
			if e.write > 0 {
				class = figure.Plain
				f.Text(columns[0].x+4, own+4, fmt.Sprint(e.write), "name", figure.Lit)
			}
			f.Rect(columns[0].x+20, own-tall/2, columns[0].w-20, tall, class)
			f.Text(columns[0].x+30, own+4, e.what, "small", class)
			arrow(1, own, middle)
		}
		f.Rect(columns[1].x, middle-tall/2, columns[1].w, tall, figure.Plain)
		f.Middle(columns[1].x+columns[1].w/2, middle+4, "web", "code", figure.Plain)
		arrow(2, middle, middle)
		if len(s.plan) == 0 {
			f.Middle(columns[2].x+columns[2].w/2, middle+4, "nothing to do", "small", figure.Muted)
		} else {
			f.Rect(columns[2].x, at(0, len(s.plan))-tall/2, columns[2].w, line*float64(len(s.plan)-1)+tall, figure.Good)
		}
		for i, step := range s.plan {
			f.Middle(columns[2].x+columns[2].w/2, at(i, len(s.plan))+4, step, "small", figure.Good)
		}
		for i, w := range s.writes {
			own := at(i, len(s.writes))
			arrow(3, middle, own)
			f.Rect(columns[3].x, own-tall/2, columns[3].w, tall, figure.Lit)
			f.Text(columns[3].x+8, own+4, fmt.Sprint(s.first+i), "name", figure.Lit)
			f.Text(columns[3].x+22, own+4, w, "small", figure.Lit)
		}
		y += height(s) + gap
	}
	return f
}
