package chapter11

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
)

// describe puts rows into words: what happened, and what there is then of each version.
func describe(rows []row) string {
	var b strings.Builder
	for _, r := range rows {
		parts := make([]string, len(r.sets))
		for i, s := range r.sets {
			parts[i] = fmt.Sprintf("%2d", s.wanted)
		}
		fmt.Fprintf(&b, "%-22s %-8s %2d available\n", r.what, strings.Join(parts, " + "), r.available())
	}
	return b.String()
}

// TestChapter11Rollout draws a rollout of ten Pods, step by step.
func TestChapter11Rollout(t *testing.T) {
	var rows []row
	inCluster(t, justDeployment, func(c *cluster) {
		c.create(web(10, "3", "2"))
		rows = c.roll(func() { c.image("web:2") })
	})
	checkLimits(t, rows, 13, 8)
	if last := rows[len(rows)-1].sets; len(last) != 2 || last[1] != (count{10, 10}) || last[0].wanted != 0 {
		t.Errorf("it ends with %+v", last)
	}
	book.Figure(t, "11-rollout", drawRollout(rows))
}

// TestChapter11Killed runs that rollout again and again. Each time the controller is killed after another write, and
// started again.
func TestChapter11Killed(t *testing.T) {
	runs, killed, most, least := 0, 0, 0, 10
	for after := 1; after == 1 || killed == runs; after++ {
		inCluster(t, justDeployment, func(c *cluster) {
			c.create(web(10, "3", "2"))
			c.mu.Lock()
			c.killAfter = after
			c.mu.Unlock()
			rows := c.roll(func() { c.image("web:2") })
			checkLimits(t, rows, 13, 8)
			if last := rows[len(rows)-1].sets; len(last) != 2 || last[1] != (count{10, 10}) || last[0].wanted != 0 {
				t.Errorf("killed after write %d, it ends with %+v", after, last)
			}
			for _, r := range rows {
				most, least = max(most, r.total()), min(least, r.available())
			}
			runs++
			if c.processes == 2 {
				killed++
			}
		})
	}
	if killed < 8 {
		t.Errorf("the controller was killed %d times", killed)
	}
	book.Trace(t, page, fmt.Sprintf("killed after each of its %d writes in turn, and started again:\n"+
		"every rollout ended with 10 new Pods; at most %d Pods, at least %d available", killed, most, least))
}

func checkLimits(t *testing.T, rows []row, most, least int) {
	t.Helper()
	for _, r := range rows {
		if r.total() > most || r.available() < least {
			t.Errorf("%+v: more than %d Pods, or fewer than %d available", r, most, least)
		}
	}
}

// drawRollout draws each moment as a row with a cell for each Pod.
func drawRollout(rows []row) *figure.Figure {
	const top, pitch, cell, left = 66.0, 36.0, 31.0, 196.0
	f := figure.New("A rollout of ten Pods, with maxSurge 3 and maxUnavailable 2",
		"Each row is a moment. Old Pods are replaced by new ones in six steps. There are never more than 13 Pods, and "+
			"never fewer than 8 available ones.", figure.Width, top+pitch*float64(len(rows))+18)
	x := func(n int) float64 { return left + cell*float64(n) }
	bottom := top + pitch*float64(len(rows)) - 4
	f.Line(figure.Point{X: x(13), Y: top - 12}, figure.Point{X: x(13), Y: bottom}, figure.Bad)
	f.End(x(13)+4, top-18, "at most 13", "small", figure.Bad)
	legend := []struct {
		class figure.Class
		text  string
	}{{figure.A, "old"}, {figure.Lit, "new, not ready"}, {figure.Good, "new, available"}}
	at := 20.0
	for _, l := range legend {
		f.Rect(at, 22, 22, 16, l.class)
		f.Text(at+28, 34, l.text, "small", figure.Plain)
		at += 44 + figure.TextWidth(l.text)
	}
	f.Text(figure.Width-102, top-18, "available", "small", figure.Muted)
	for n, r := range rows {
		y := top + pitch*float64(n)
		f.Text(20, y+18, r.what, "small", figure.Plain)
		at := 0
		put := func(count int, class figure.Class) {
			for range count {
				f.Rect(x(at)+1, y+2, cell-3, pitch-12, class)
				at++
			}
		}
		put(r.sets[0].wanted, figure.A)
		if len(r.sets) > 1 {
			s := r.sets[1]
			put(min(s.available, s.wanted), figure.Good)
			put(s.wanted-min(s.available, s.wanted), figure.Lit)
		}
		f.Text(figure.Width-82, y+18, fmt.Sprint(r.available()), "name", figure.Plain)
	}
	return f
}

// TestChapter11Broken follows a rollout that cannot succeed, and the way back.
func TestChapter11Broken(t *testing.T) {
	var stuck, back []row
	var after string
	inCluster(t, justDeployment, func(c *cluster) {
		c.create(web(10, "3", "2"))
		stuck = c.roll(func() { c.image("web:broken") })
		time.Sleep(11 * time.Minute)
		c.settle()
		for _, condition := range c.deployment().Status.Conditions {
			if condition.Type == appsv1.DeploymentProgressing {
				after = fmt.Sprintf("%s is %s: %s", condition.Type, condition.Status, condition.Reason)
			}
		}
		back = c.roll(func() { c.image("web:1") })
		for _, rs := range c.sets() {
			after += fmt.Sprintf("\n%s has the revision %d", imageOf(&rs), at(rs.Annotations, "revision"))
		}
	})
	checkLimits(t, stuck, 13, 8)
	checkLimits(t, back, 13, 8)
	if last := stuck[len(stuck)-1].sets; len(last) != 2 || last[0].wanted != 8 || last[1].wanted != 5 {
		t.Errorf("it is stuck at %+v", last)
	}
	if last := back[len(back)-1].sets; last[0] != (count{10, 10}) || last[1].wanted != 0 {
		t.Errorf("the way back ends at %+v", last)
	}
	condition, revisions, _ := strings.Cut(after, "\n")
	book.Trace(t, page, describe(stuck)+"after eleven minutes    "+condition+"\n\nback to the template of web:1:\n"+
		describe(back)+revisions+"\n")
}

// TestChapter11Ways compares limits, by rollouts of ten Pods.
func TestChapter11Ways(t *testing.T) {
	table := "| maxSurge | maxUnavailable | Pods at most | available at least | waits for Pods |\n" +
		"|---|---|---|---|---|\n"
	for _, w := range []struct {
		surge, unavailable string
		recreate           bool
	}{
		{surge: "25%", unavailable: "25%"},
		{surge: "1", unavailable: "0"},
		{surge: "0", unavailable: "1"},
		{surge: "10", unavailable: "0"},
		{surge: "0", unavailable: "10"},
		{recreate: true},
	} {
		inCluster(t, justDeployment, func(c *cluster) {
			d := web(10, w.surge, w.unavailable)
			if w.recreate {
				d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
			}
			c.create(d)
			rows := c.roll(func() { c.image("web:2") })
			most, least, waits := 0, 10, 0
			for _, r := range rows {
				most, least = max(most, r.total()), min(least, r.available())
				if strings.HasSuffix(r.what, "available") {
					waits++
				}
			}
			if last := rows[len(rows)-1].sets; last[1] != (count{10, 10}) {
				t.Errorf("%+v ends with %+v", w, last)
			}
			limits := fmt.Sprintf("%s | %s", w.surge, w.unavailable)
			if w.recreate {
				limits = "strategy `Recreate` | "
			}
			table += fmt.Sprintf("| %s | %d | %d | %d |\n", limits, most, least, waits)
		})
	}
	book.Block(t, page, table)
}

// TestChapter11Scale asks for more Pods while a rollout is stuck in the middle.
func TestChapter11Scale(t *testing.T) {
	inCluster(t, justDeployment, func(c *cluster) {
		c.create(web(10, "3", "2"))
		c.roll(func() { c.image("web:broken") })
		rows := c.roll(func() { c.patch(`{"spec":{"replicas":20}}`) })
		if last := rows[len(rows)-1]; last.total() != 23 {
			t.Errorf("it ends with %+v", last)
		}
		book.Trace(t, page, describe(rows))
	})
}
