package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// The tests of this file are about servers that break the rules of the API, and user code that breaks those of the
// informer.

// TestUnknownObjectFromThePast (case 3): an object from before the watermark that the cache does not hold was either
// deleted since, or left out by the server. A list decides: the first stays deleted, the second is added.
//
// Source: etcd#15271, a watch that went back in time; etcd#15220, a progress notification that ran ahead of the events.
func TestUnknownObjectFromThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("deleted")
		s.put("b")
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		s.remove("deleted")
		s.put("b")
		_ = c.take()
		synctest.Wait()
		_ = c.take()
		s.inject(sent(listwatch.Added, "deleted", "u1", "2"))
		time.Sleep(time.Minute)
		c.told(t)
		c.holds(t, "deleted", "")

		s.mu.Lock()
		watches := s.watches
		s.watches = nil
		s.mu.Unlock()
		at := s.put("missed")
		s.mu.Lock()
		s.watches, s.rv = watches, at+5
		s.mu.Unlock()
		s.bookmark(0)
		s.inject(
			listwatch.Event[object]{
				Type: listwatch.Added, Object: s.objects["default/missed"],
				ResourceVersion: s.objects["default/missed"].ResourceVersion,
			},
		)
		time.Sleep(time.Minute)
		c.told(t, "add missed@6/u3")
		if st := c.inf.Stats(); st.RelistReasons["unverifiable"] != 2 || st.Relists != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestObjectFromThePastRightAfterItsDeletion (case 3): when the old state arrives, the deletion need not be in the
// cache yet.
func TestObjectFromThePastRightAfterItsDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("deleted")
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		s.remove("deleted")
		s.inject(sent(listwatch.Added, "deleted", "u1", "2"))
		time.Sleep(time.Minute)
		c.told(t, "add deleted@2/u1 (initial)", "delete deleted@3/u1")
		c.holds(t, "deleted", "")
	})
}

// TestDeletionThatTheWatchLeftOut (case 5): another UID means another object, even if the watch showed no deletion.
//
// Source: etcd#18089 and etcd#19179, watches that lost deletions.
func TestDeletionThatTheWatchLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		c.told(t, "add a@2/u1 (initial)")
		s.inject(sent(listwatch.Modified, "a", "u2", "5"))
		c.told(t, "delete a@2/u1 (last known state)", "add a@5/u2")
		s.inject(sent(listwatch.Removed, "a", "u3", "7"))
		c.told(t, "delete a@5/u2 (last known state)")
	})
}

// TestApplyReplaceFromThePast: a list from before the watermark changes nothing, unless the history went back.
func TestApplyReplaceFromThePast(t *testing.T) {
	x := indexer.New[object](nil, indexer.Options{})
	for _, d := range []deltafifo.Delta[object]{
		{Type: deltafifo.Replace, Objects: []object{sent(listwatch.Added, "a", "u", "5").Object}, ResourceVersion: "7"},
		{Type: deltafifo.Replace, Objects: []object{sent(listwatch.Added, "b", "v", "3").Object}, ResourceVersion: "6"},
	} {
		must(x.Apply([]deltafifo.Delta[object]{d}))
		if _, found := x.Get("default/a"); !found || x.Len() != 1 || x.ResourceVersion() != "7" {
			t.Errorf("after the list of %s: %v at %s", d.ResourceVersion, x.Keys(), x.ResourceVersion())
		}
	}
	must(x.Apply([]deltafifo.Delta[object]{
		{Type: deltafifo.Replace, ResourceVersion: "6", Accept: deltafifo.AcceptEarlier},
	}))
	if x.Len() != 0 || x.ResourceVersion() != "6" {
		t.Errorf("history went back, and the cache holds %v at %s", x.Keys(), x.ResourceVersion())
	}
}

// TestRestoredBehindALoadBalancer (case 26): API servers end all watches in good order and stop, and restored ones take
// their place behind the load balancer, perhaps after an outage. These would serve a watch at the informer's position
// in silence until it times out.
func TestRestoredBehindALoadBalancer(t *testing.T) {
	for name, end := range map[string]error{
		"in good order": io.EOF,
		"badly":         apierrors.NewServiceUnavailable("nobody is there"),
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", streaming: ", stream), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer()
					s.put("a")
					s.put("b")
					c, stop := followed(t, s, &proxied{server: s, watch: timed}, Options[object]{StreamLists: stream})
					defer stop()
					s.put("a")
					s.put("lost")
					synctest.Wait()
					_ = c.take()
					time.Sleep(time.Minute)
					s.restore(3)
					s.fail([]error{apierrors.NewServiceUnavailable("nobody is there")}, nil)
					s.cut(end)
					time.Sleep(10 * time.Second)
					c.told(t, "delete lost@5/u3 (last known state)", "update a@4/u1 -> a@2/u1")
					if st := c.inf.Stats(); st.Rebuilds != 1 || st.ResourceVersion != "3" || c.inf.Health().Err != nil {
						t.Errorf("%+v, %v", st, c.inf.Health().Err)
					}
				})
			})
		}
	}
}

// timed ends a watch in good order at its timeout.
func timed(o listwatch.WatchOptions, w listwatch.Watch[object]) listwatch.Watch[object] {
	end := time.Now().Add(o.Timeout)
	return watchFunc(func(ctx context.Context) (listwatch.Event[object], error) {
		ctx, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		ev, err := w.Next(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = io.EOF
		}
		return ev, err
	})
}

// paged answers lists page by page.
type paged struct {
	*server
	pages []listwatch.ListResult
	asked int
}

func (p *paged) List(context.Context, listwatch.ListOptions, func(object) error) (listwatch.ListResult, error) {
	p.asked++
	return p.pages[(p.asked-1)%len(p.pages)], nil
}

// TestPagesOfSeveralVersions: if the pages of a list have several versions, the watch begins at the earliest. Otherwise
// changes to the objects of an early page would be lost.
func TestPagesOfSeveralVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		lw := &paged{
			server: s,
			pages: []listwatch.ListResult{
				{ResourceVersion: "7", Continue: "x"},
				{ResourceVersion: "5", Continue: "y"},
				{ResourceVersion: "9"},
			},
		}
		c, stop := followed(t, s, lw, Options[object]{})
		defer stop()
		if asked := c.server.asked(); !slices.Equal(asked, []string{`watch rv="5"`}) {
			t.Errorf("asked %q", asked)
		}
	})
}

// TestPagesWithoutEnd: a server that repeats continue tokens does not fill the memory.
func TestPagesWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		lw := &paged{
			server: s,
			pages: []listwatch.ListResult{
				{ResourceVersion: "5", Continue: "x"}, {ResourceVersion: "5", Continue: "y"},
			},
		}
		c, stop := followed(t, s, lw, Options[object]{})
		defer stop()
		if err := c.inf.Health().Err; err == nil || !strings.Contains(err.Error(), "repeats a continue token") ||
			lw.asked > 4 {
			t.Errorf("asked %d times: %v", lw.asked, err)
		}
	})
}

// TestTransformBreaksItsPromise: nil for an object, or a panic, counts as an error.
func TestTransformBreaksItsPromise(t *testing.T) {
	for want, transform := range map[string]func(object) (object, error){
		"transform default/a: it returned nil": func(object) (object, error) { return nil, nil },
		"transform default/a: panic: no a":     func(object) (object, error) { panic("no a") },
	} {
		for _, stream := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				var mended atomic.Bool
				c, stop := followed(t, s, nil,
					Options[object]{StreamLists: stream, Transform: func(o object) (object, error) {
						if !mended.Load() && o.Name == "a" {
							return transform(o)
						}
						return o, nil
					}})
				defer stop()
				s.put("b")
				s.put("a")
				c.told(t, "add b@2/u1")
				var failed *connection.TransformError
				if err := c.inf.Health().Err; !errors.As(err, &failed) || failed.Error() != want ||
					c.inf.ResourceVersion() != "2" {
					t.Errorf("%v at %s, want %s", err, c.inf.ResourceVersion(), want)
				}
				mended.Store(true)
				time.Sleep(time.Minute)
				c.told(t, "add a@3/u2")
			})
		}
	}
}

// TestListerWatcherGivesNil: a nil object is rejected before it reaches the cache.
func TestListerWatcherGivesNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		s.inject(listwatch.Event[object]{Type: listwatch.Modified, ResourceVersion: "2"})
		synctest.Wait()
		if err := c.inf.Health().Err; !errors.Is(err, connection.ErrNil) || c.inf.ResourceVersion() != "1" {
			t.Errorf("%v at %s", err, c.inf.ResourceVersion())
		}
	})
}
