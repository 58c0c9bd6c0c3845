package chapter12

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
)

var shown = []string{"deployment", "replicaset", "endpoints"}

// anatomy is what a run of a manager shows of its parts.
type anatomy struct {
	informers, runnables []string
	watches              int
	holder               string
}

// look runs a manager with these controllers for a minute.
func look(t *testing.T, selection ...string) (a anatomy) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, "a", true)
		if err := controllers.Add(m, controllers.Options{Selection: selection}); err != nil {
			t.Fatal(err)
		}
		stop := w.start(t, m, nil)
		time.Sleep(time.Minute)
		for _, h := range m.Informers().Health() {
			name, _, _ := strings.Cut(h.Resource, ".")
			a.informers = append(a.informers, name)
		}
		slices.Sort(a.informers)
		open := map[string]bool{}
		for _, r := range w.Requests() {
			if r.Verb == "watch" {
				open[r.Resource] = true
			}
		}
		a.watches = len(open)
		for _, d := range m.Controllers() {
			a.runnables = append(a.runnables, d.Name())
		}
		leases := w.client.CoordinationV1().Leases("default")
		lease, err := leases.Get(t.Context(), "web.example.com", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a.holder = *lease.Spec.HolderIdentity
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestChapter12Shared compares three processes of one controller each with one of three.
func TestChapter12Shared(t *testing.T) {
	table := "| | informers | what they hold |\n|---|---|---|\n"
	sum, needs := 0, map[string][]string{}
	for _, name := range shown {
		a := look(t, name)
		sum += len(a.informers)
		needs[name] = a.informers
		table += fmt.Sprintf("| `%s` alone | %d | %s |\n", name, len(a.informers), strings.Join(a.informers, ", "))
	}
	all := look(t, shown...)
	table += fmt.Sprintf("| one process with all three | %d | %s |\n", len(all.informers),
		strings.Join(all.informers, ", "))
	if all.watches != len(all.informers) || len(all.informers) >= sum || all.holder != "a" {
		t.Errorf("%d watches, %d informers, %d of single processes, held by %q", all.watches, len(all.informers), sum,
			all.holder)
	}
	book.Block(t, page, table)
	book.Figure(t, "manager", drawManager(all, needs))
}

// drawManager draws a manager, its parts and what passes between them.
func drawManager(a anatomy, needs map[string][]string) *figure.Figure {
	const (
		left, server          = 16.0, 104.0
		frame, frameEnd       = 168.0, 704.0
		informers, infWidth   = 204.0, 128.0
		loops, loopWidth      = 404.0, 150.0
		clients, clientsWidth = 584.0, 106.0
		top, small            = 80.0, 38.0
	)
	bottom := top + 48*float64(len(a.informers)) + 8
	f := figure.New("A manager and its parts", fmt.Sprintf("One process holds %d informers (%s), which %d controllers "+
		"share. Each controller has its queue and its workers. They write through one client, which checks the lease. "+
		"The elector renews the lease on the API server. Health, metrics and the event sender belong to the process.",
		len(a.informers), strings.Join(a.informers, ", "), len(a.runnables)), figure.Width, bottom+116)
	arrow := func(class figure.Class, x1, y1, x2, y2 float64) {
		f.Arrow(class, figure.Point{X: x1, Y: y1}, figure.Point{X: x2, Y: y2})
	}
	f.Frame(frame, 20, frameEnd-frame, bottom+76, "one process")
	f.Box(left, top, server, bottom-top-18, figure.Plain, "API server", "has the objects")
	lease := bottom + 30
	f.Box(left, lease, server, small+8, figure.Lit, "the lease", "held by "+a.holder)
	f.Text(informers, top-12, "informers", "small", figure.Muted)
	f.Text(loops, top-12, "controllers", "small", figure.Muted)

	at := map[string]float64{} // the middle of each informer
	for i, name := range a.informers {
		y := top + 48*float64(i)
		at[name] = y + small/2
		class := classOf(needs, name)
		arrow(figure.Plain, left+server+4, at[name], informers-4, at[name])
		f.Box(informers, y, infWidth, small, class, name)
	}
	f.Text(left+server+8, at[a.informers[0]]-7, "watch", "small", figure.Muted)

	pitch := (bottom - top - 8) / float64(len(shown))
	for i, name := range shown {
		y := top + pitch*float64(i) + (pitch-64)/2
		for n, need := range needs[name] {
			to := y + 32 + 10*(float64(n)-float64(len(needs[name])-1)/2)
			arrow(classOf(needs, need), informers+infWidth+4, at[need], loops-5, to)
		}
		f.Box(loops, y, loopWidth, 64, figure.Plain, name, "queue, workers,", "syncHandler")
		arrow(figure.Plain, loops+loopWidth+4, y+32, clients-4, y+32)
	}
	f.Box(clients, top, clientsWidth, bottom-top-18, figure.Plain, "client", "checks the", "lease before", "each write")
	f.Arrow(figure.Plain, figure.Point{X: clients + clientsWidth/2, Y: top - 4},
		figure.Point{X: clients + clientsWidth/2, Y: 50}, figure.Point{X: left + server/2, Y: 50},
		figure.Point{X: left + server/2, Y: top - 4})
	f.Middle((left+server/2+frame)/2, 44, "writes", "small", figure.Muted)

	f.Box(informers, lease, infWidth, small+8, figure.Lit, "elector", "renews every 2 s")
	arrow(figure.Lit, informers-4, lease+23, left+server+4, lease+23)
	f.Box(loops, lease, loopWidth, small+8, figure.Plain, "event sender", "sends last, at a stop")
	f.Box(clients, lease, clientsWidth, small+8, figure.Plain, "servers", "health, metrics")
	return f
}

// classOf is the style of an informer: one that several controllers share stands out.
func classOf(needs map[string][]string, informer string) figure.Class {
	users := 0
	for _, need := range needs {
		if slices.Contains(need, informer) {
			users++
		}
	}
	if users > 1 {
		return figure.C
	}
	return figure.A
}
