package informer

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/versions"
)

// The tests of this file, of cases_fault_test.go and of cases_handler_test.go are the cases of docs/informer-cases.md
// that no other test covers.

// caseRun is an informer of a scripted server, with a handler that records its calls.
type caseRun struct {
	*server
	*recorder
	inf *SharedInformer[object]
}

// followed starts an informer of lw, or of the server itself if lw is nil, and waits until all is quiet.
func followed(t *testing.T, s *server, lw listwatch.ListerWatcher[object],
	o Options[object],
) (c *caseRun, stop func()) {
	t.Helper()
	if lw == nil {
		lw = s
	}
	o.Resource = "pods"
	c = &caseRun{server: s, recorder: &recorder{}, inf: NewSharedInformer(lw, o)}
	must(c.inf.AddHandler(c.recorder.handler(), HandlerOptions{}))
	stop = start(t, c.inf.Run)
	synctest.Wait()
	return c, stop
}

// told checks the handler's calls since the last check.
func (c *caseRun) told(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := c.take(); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// holds checks the state of one object in the cache; "" means that it is not there.
func (c *caseRun) holds(t *testing.T, name, rv string) {
	t.Helper()
	o, found := c.inf.Get("default", name)
	if got := ""; !found && rv != "" || found && o.ResourceVersion != rv {
		if found {
			got = o.ResourceVersion
		}
		t.Errorf("the cache holds %s@%s, want @%s", name, got, rv)
	}
}

// counts returns the number of requests of each kind since the last call.
func (c *caseRun) counts() (lists, verifies, watches int) {
	for _, r := range c.asked() {
		switch {
		case strings.HasPrefix(r, "watch"):
			watches++
		case strings.Contains(r, "limit=1 "):
			verifies++
		default:
			lists++
		}
	}
	return lists, verifies, watches
}

// sent is an event that is not in the server's history.
func sent(kind listwatch.EventType, name, uid, rv string) listwatch.Event[object] {
	obj := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid), ResourceVersion: rv},
	}
	return listwatch.Event[object]{Type: kind, Object: obj, ResourceVersion: rv}
}

// proxied is a server behind something that changes its answers.
type proxied struct {
	*server
	// listed runs after each list.
	listed func()
	// watch wraps each watch.
	watch func(listwatch.WatchOptions, listwatch.Watch[object]) listwatch.Watch[object]
}

func (p *proxied) List(ctx context.Context, o listwatch.ListOptions,
	yield func(object) error,
) (listwatch.ListResult, error) {
	result, err := p.server.List(ctx, o, yield)
	if p.listed != nil {
		p.listed()
	}
	return result, err
}

func (p *proxied) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Watch[object], error) {
	w, err := p.server.Watch(ctx, o)
	if err == nil && p.watch != nil {
		w = p.watch(o, w)
	}
	return w, err
}

// watchFunc is the Next function of a Watch.
type watchFunc func(context.Context) (listwatch.Event[object], error)

func (f watchFunc) Next(ctx context.Context) (listwatch.Event[object], error) { return f(ctx) }
func (f watchFunc) Close() error                                              { return nil }

// TestOrderAndCacheBeforeHandlers (case 1): each handler gets the states of an object in the server's order. When it is
// called, the cache has that state or a later one.
func TestOrderAndCacheBeforeHandlers(t *testing.T) {
	for _, batched := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			c, stop := followed(t, s, nil, Options[object]{})
			defer stop()
			other := &recorder{}
			must(c.inf.AddHandler(other.handler(), HandlerOptions{}))
			var calls int
			must(c.inf.AddHandler(Handler[object]{
				OnAdd:    func(o object, _ bool) { calls++; inCache(t, c.inf, o) },
				OnUpdate: func(_, o object) { calls++; inCache(t, c.inf, o) },
				OnDelete: func(d Deleted[object]) {
					calls++
					if o, found := c.inf.Get("default", d.Object.Name); found && o.UID == d.Object.UID {
						t.Errorf("told that %s is gone, the cache holds it", show(d.Object))
					}
				},
			}, HandlerOptions{}))
			pause := synctest.Wait
			if batched {
				pause = func() {}
			}
			for range 3 {
				s.put("a")
				pause()
			}
			s.remove("a")
			want := []string{"add a@2/u1", "update a@2/u1 -> a@3/u1", "update a@3/u1 -> a@4/u1", "delete a@5/u1"}
			c.told(t, want...)
			if got := other.take(); !slices.Equal(got, want) || calls != 4 {
				t.Errorf("the second handler was told %q, the third was called %d times", got, calls)
			}
		})
	}
}

func inCache(t *testing.T, inf Informer[object], told object) {
	held, found := inf.Get(told.Namespace, told.Name)
	if found && versions.Earlier(held.ResourceVersion, told.ResourceVersion) || !found &&
		!versions.Earlier(told.ResourceVersion, inf.ResourceVersion()) {
		t.Errorf("told of %s, the cache holds %v up to %s", show(told), held, inf.ResourceVersion())
	}
}

// TestDuplicateEvents (case 2): an event that repeats the state of an object reaches no handler.
//
// Source: etcd#17247, a watch that sent events twice.
func TestDuplicateEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		c.told(t, "add a@2/u1 (initial)")
		s.inject(sent(listwatch.Added, "a", "u1", "2"))
		s.inject(sent(listwatch.Modified, "a", "u1", "2"))
		c.told(t)
		s.remove("a")
		s.inject(sent(listwatch.Removed, "a", "u1", "3"))
		s.inject(sent(listwatch.Removed, "never", "u9", "3"))
		c.told(t, "delete a@3/u1")
		if st := c.inf.Stats(); st.Duplicates != 4 || st.Relists != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestEventsFromThePast (case 3): neither an old state nor an old deletion takes the cache back.
//
// Source: etcd#15271, a watch that went back in time; KEP-5504, versions are compared as integers: 10 comes after 9.
func TestEventsFromThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.rv = 8
		s.put("a")
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		s.put("a")
		c.told(t, "add a@9/u1 (initial)", "update a@9/u1 -> a@10/u1")
		for _, kind := range []listwatch.EventType{listwatch.Modified, listwatch.Added, listwatch.Removed} {
			s.inject(sent(kind, "a", "u1", "9"))
			c.told(t)
			c.holds(t, "a", "10")
			if rv := c.inf.ResourceVersion(); rv != "10" {
				t.Errorf("watermark %s after an old %s", rv, kind)
			}
			time.Sleep(5 * time.Minute) // It asks whether the server's history went back, and follows again.
		}
		s.put("a")
		c.told(t, "update a@10/u1 -> a@11/u1")
		if st := c.inf.Stats(); st.Outdated != 3 || st.Relists != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestVersionsThatCannotBeCompared (case 3): if a server's versions are not numbers, equal versions are one state, and
// the state that arrives later is the later one.
func TestVersionsThatCannotBeCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		for _, ev := range []listwatch.Event[object]{
			sent(listwatch.Added, "a", "u", "x9"), sent(listwatch.Modified, "a", "u", "x10"),
			sent(listwatch.Modified, "a", "u", "x10"),
			sent(listwatch.Modified, "a", "u", "x2"),
		} {
			s.inject(ev)
		}
		c.told(t, "add a@x9/u", "update a@x9/u -> a@x10/u", "update a@x10/u -> a@x2/u")
		if st := c.inf.Stats(); st.Duplicates != 1 || st.ResourceVersion != "x2" {
			t.Errorf("%+v", st)
		}
	})
}

// TestChangesBetweenListAndWatch (case 6): a change between the list and the watch is delivered once.
func TestChangesBetweenListAndWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("changed")
		s.put("deleted")
		s.put("untouched")
		first := true
		c, stop := followed(t, s, &proxied{server: s, listed: func() {
			if first {
				first = false
				s.put("changed")
				s.remove("deleted")
				s.put("new")
			}
		}}, Options[object]{})
		defer stop()
		c.told(t, "add changed@2/u1 (initial)", "add deleted@3/u2 (initial)", "add untouched@4/u3 (initial)",
			"update changed@2/u1 -> changed@5/u1", "delete deleted@6/u2", "add new@7/u4")
		time.Sleep(time.Hour)
		c.told(t)
	})
}

// TestStaleReplica (case 9): a lagging replica may answer the first list. Later it must not take the cache back,
// whatever version the list asks for.
func TestStaleReplica(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.put("a")
			then := serverPage{rv: s.rv, objects: []object{s.objects["default/a"]}}
			s.put("a")
			s.put("b")
			c, stop := followed(t, s, nil, Options[object]{StreamLists: stream})
			defer stop()
			c.told(t, "add a@3/u1 (initial)", "add b@4/u2 (initial)")
			s.put("b")
			c.told(t, "update b@4/u2 -> b@5/u2")
			s.stale = &then
			s.compact()
			s.remove("a")
			s.cut(errExpired)
			time.Sleep(time.Minute)
			c.told(t, "delete a@6/u1")
			c.holds(t, "a", "")
			c.holds(t, "b", "5")
			if st := c.inf.Stats(); st.ResourceVersion != "6" || st.Rebuilds != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestWatchClosedAtOnce (case 12): if a server closes every watch at once, the informer watches less and less often,
// and never lists.
func TestWatchClosedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		closing := func(listwatch.WatchOptions, listwatch.Watch[object]) listwatch.Watch[object] {
			return watchFunc(func(context.Context) (listwatch.Event[object], error) {
				return listwatch.Event[object]{}, io.EOF
			})
		}
		c, stop := followed(t, s, &proxied{server: s, watch: closing}, Options[object]{})
		defer stop()
		for minute := range 60 {
			time.Sleep(time.Minute)
			_, verifies, watches := c.counts()
			if most := 3; minute > 0 && (watches > most || verifies > most) || minute == 0 &&
				(watches > 7 || verifies > 7) {
				t.Errorf("minute %d: %d watches, %d looks at the server's version", minute, watches, verifies)
			}
		}
		c.told(t, "add a@2/u1 (initial)")
		if st := c.inf.Stats(); st.Relists != 0 || st.Lists != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// TestWatchesThatTimeOut (case 13): if a server ends a watch at its timeout, that costs one new watch.
func TestWatchesThatTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		c, stop := followed(t, s, &proxied{server: s, watch: timed}, Options[object]{})
		defer stop()
		time.Sleep(24 * time.Hour)
		lists, verifies, watches := c.counts()
		if lists != 1 || verifies != 0 || watches < 24*6 || watches > 24*12+1 {
			t.Errorf("in a day: %d lists, %d verifications, %d watches", lists, verifies, watches)
		}
		c.told(t, "add a@2/u1 (initial)")
	})
}
