package chapter06

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/informer"
)

const page = "06-informers"

// A diary is what handlers hear, in a bubble.
type diary struct {
	mu    sync.Mutex
	began time.Time
	b     strings.Builder
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(&d.b, format+"\n", args...)
}

// since is the time of the bubble.
func (d *diary) since() time.Duration { return time.Since(d.began) }

func state(p *corev1.Pod) string { return fmt.Sprintf("%s@%s/%s", p.Name, p.ResourceVersion, p.UID) }

// handler writes down what it hears.
func (d *diary) handler(name string) informer.Handler[*corev1.Pod] {
	return informer.Handler[*corev1.Pod]{
		OnAdd: func(p *corev1.Pod, initial bool) {
			what := ""
			if initial {
				what = ", initial"
			}
			d.write("  %s: add %s%s", name, state(p), what)
		},
		OnUpdate: func(old, p *corev1.Pod) {
			if old == p {
				d.write("  %s: update %s, unchanged", name, state(p))
				return
			}
			d.write("  %s: update %s to %s", name, state(old), state(p))
		},
		OnDelete: func(gone informer.Deleted[*corev1.Pod]) {
			what := ""
			if gone.Stale {
				what = ", stale"
			}
			d.write("  %s: delete %s%s", name, state(gone.Object), what)
		},
	}
}

// TestChapter06Life: what a handler hears from the first list to a gap.
func TestChapter06Life(t *testing.T) {
	d := &diary{}
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		s.put("b")
		inf, stop := start(t, s)
		defer stop()
		add := func(name string) {
			if _, err := inf.AddHandler(d.handler(name), informer.HandlerOptions{Name: name}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		d.write("handler h is added; the cache has a and b")
		add("h")
		d.write("a is changed, c is created, b is deleted")
		s.put("a")
		s.put("c")
		s.remove("b")
		synctest.Wait()
		d.write("the server is down; meanwhile c is deleted, and a is deleted and created again")
		s.stop()
		s.remove("c")
		s.remove("a")
		s.put("a")
		synctest.Wait()
		s.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		d.write("handler late is added")
		add("late")
	})
	text := d.b.String()
	if strings.Count(text, "stale") != 2 || !strings.Contains(text, "late: add a@8/u4, initial") {
		t.Errorf("the handlers heard\n%s", text)
	}
	book.Trace(t, page, text)
}

// TestChapter06Merged: what a handler hears that was busy while things happened.
func TestChapter06Merged(t *testing.T) {
	table := "| while it was busy | it hears |\n|---|---|\n"
	for _, c := range []struct {
		what string
		do   func(s *server)
		want int
	}{
		{"`a` changed three times", func(s *server) {
			s.put("a")
			s.put("a")
			s.put("a")
		}, 1},
		{"`b` was created, and changed twice", func(s *server) {
			s.put("b")
			s.put("b")
			s.put("b")
		}, 1},
		{"`b` was created, changed and deleted", func(s *server) {
			s.put("b")
			s.put("b")
			s.remove("b")
		}, 0},
		{"`a` changed twice and was deleted", func(s *server) {
			s.put("a")
			s.put("a")
			s.remove("a")
		}, 1},
		{"`a` was deleted, created again, and changed", func(s *server) {
			s.remove("a")
			s.put("a")
			s.put("a")
		}, 2},
	} {
		d := &diary{}
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.put("a")
			s.put("busy")
			inf, stop := start(t, s)
			defer stop()
			h, release := d.handler("h"), make(chan struct{})
			told := h.OnUpdate
			h.OnUpdate = func(old, p *corev1.Pod) {
				if p.Name == "busy" {
					<-release
					return
				}
				told(old, p)
			}
			if _, err := inf.AddHandler(h, informer.HandlerOptions{MaxLag: 1}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			d.b.Reset()
			s.put("busy")
			synctest.Wait()
			s.after = synctest.Wait // Each change is a batch of its own.
			c.do(s)
			close(release)
			synctest.Wait()
		})
		var heard []string
		for line := range strings.Lines(d.b.String()) {
			heard = append(heard, strings.TrimSpace(line))
		}
		if len(heard) != c.want {
			t.Errorf("%s: it hears %q", c.what, heard)
		}
		cell := "nothing"
		if len(heard) > 0 {
			cell = strings.ReplaceAll(strings.Join(heard, ", then "), "h: ", "")
		}
		table += fmt.Sprintf("| %s | %s |\n", c.what, cell)
	}
	book.Block(t, page, table)
}

// TestChapter06Synced: the cache is full before a handler has heard of all that is in it.
func TestChapter06Synced(t *testing.T) {
	d := &diary{}
	synctest.Test(t, func(t *testing.T) {
		d.began = time.Now()
		s := newServer()
		for _, name := range []string{"a", "b", "c"} {
			s.put(name)
		}
		inf := informer.NewSharedInformer(s, informer.Options[*corev1.Pod]{Resource: "pods"})
		r, err := inf.AddHandler(informer.Handler[*corev1.Pod]{OnAdd: func(p *corev1.Pod, _ bool) {
			time.Sleep(time.Second)
			d.write("%2v  the handler is through with %s", d.since(), p.Name)
			if p.Name == "b" {
				panic("no b, please")
			}
		}}, informer.HandlerOptions{Name: "slow"})
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, inf)
		defer stop()
		<-inf.Synced()
		if r.HasSynced() {
			t.Error("the handler has synced with the cache")
		}
		d.write("%2v  the cache has synced, with %d pods; the handler has not", d.since(), inf.Indexer().Len())
		<-r.Synced()
		time.Sleep(time.Millisecond)
		d.write("%2v  the handler has synced, after %d calls, of which %d panicked", d.since().Truncate(time.Second),
			r.Stats().Delivered, r.Stats().Panics)
	})
	book.Trace(t, page, d.b.String())
}

// TestChapter06Resync: a resync repeats the cache to those who want it, and asks the server nothing.
func TestChapter06Resync(t *testing.T) {
	d := &diary{}
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		inf, stop := start(t, s)
		defer stop()
		for name, resync := range map[string]time.Duration{"cloud": time.Minute, "plain": 0} {
			_, err := inf.AddHandler(d.handler(name), informer.HandlerOptions{Name: name, Resync: resync})
			if err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		asked := len(s.requests())
		d.b.Reset()
		d.write("both handlers have heard of a, after %d requests", asked)
		d.write("a minute passes")
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		requests := s.requests()
		d.write("the server was asked for %d things", len(requests))
		if len(requests) > 0 {
			t.Errorf("a resync asked for %q", requests)
		}
	})
	text := d.b.String()
	if strings.Contains(text, "plain") || strings.Count(text, "unchanged") != 1 {
		t.Errorf("the handlers heard\n%s", text)
	}
	book.Trace(t, page, text)
}
