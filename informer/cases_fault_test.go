package informer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
)

// TestHalfOpenConnection (case 14): a connection that has gone silent is given up. Until then its age shows, and
// afterwards handlers get what was missed.
func TestHalfOpenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		s.mu.Lock()
		s.watches = nil // The server's side is gone, but the informer does not know.
		s.mu.Unlock()
		s.put("a")
		time.Sleep(4 * time.Minute)
		c.told(t)
		if age := time.Since(c.inf.Stats().LastEvent); age != 4*time.Minute {
			t.Errorf("last heard %v ago", age)
		}
		time.Sleep(7 * time.Minute) // Twice 5 min and half a minute at most.
		c.told(t, "add a@2/u1")
		if lists, _, watches := c.counts(); lists != 1 || watches != 2 {
			t.Errorf("%d lists, %d watches", lists, watches)
		}
	})
}

// TestSilentList (case 14): a list without an answer is given up, too, and repeated.
func TestSilentList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inf := NewSharedInformer[object](&hanging{}, Options[object]{Resource: "pods"})
		defer start(t, inf.Run)()
		time.Sleep(5*time.Minute - 1)
		if err := inf.Health().Err; err != nil {
			t.Errorf("too early: %v", err)
		}
		time.Sleep(time.Minute)
		if st := inf.Stats(); !errors.Is(inf.Health().Err, connection.ErrSilent) || st.Lists != 2 || st.Errors != 1 {
			t.Errorf("%v, %+v", inf.Health().Err, st)
		}
	})
}

// TestErrorEvents (case 15): errors that a server sends in an open watch have the same effect as error responses.
func TestErrorEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		_ = c.asked()
		s.cut(errTooManyFor(40))
		time.Sleep(40*time.Second - 1)
		if asked := c.asked(); len(asked) > 0 {
			t.Errorf("asked %q before the server wanted", asked)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if lists, verifies, watches := c.counts(); lists+verifies > 0 || watches != 1 {
			t.Errorf("after 429: %d lists, %d verifications, %d watches", lists, verifies, watches)
		}
		time.Sleep(10 * time.Minute)
		_ = c.asked()
		s.fail(nil, []error{scriptedError("500"), scriptedError("500")})
		s.cut(scriptedError("500"))
		time.Sleep(30 * time.Second)
		if lists, verifies, watches := c.counts(); lists != 1 || verifies > 0 || watches != 3 {
			t.Errorf("after three times 500: %d lists, %d verifications, %d watches", lists, verifies, watches)
		}
	})
}

// TestForbiddenLater (case 15): an informer that loses its permission keeps its cache, reports the error, retries now
// and then, and goes on when the permission is back. Each of the two changes is one line in the log.
func TestForbiddenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		log := ktesting.NewLogger(ktesting.NopTL{},
			ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
		c := &caseRun{
			server: s, recorder: &recorder{},
			inf: NewSharedInformer[object](s, Options[object]{Resource: "pods"}),
		}
		must(c.inf.AddHandler(c.recorder.handler(), HandlerOptions{}))
		defer start(t, func(ctx context.Context) error { return c.inf.Run(klog.NewContext(ctx, log)) })()
		synctest.Wait()
		s.fail(slices.Repeat([]error{scriptedError("403")}, 1000), slices.Repeat([]error{scriptedError("403")}, 1000))
		s.cut(scriptedError("403"))
		time.Sleep(time.Minute)
		_ = c.asked()
		for range 60 {
			time.Sleep(time.Minute)
			if n := len(c.asked()); n > 3 {
				t.Errorf("%d requests in a minute", n)
			}
		}
		c.holds(t, "a", "2")
		h := c.inf.Health()
		if !h.Synced || h.Err == nil || !strings.Contains(h.Err.Error(), "forbidden") ||
			time.Since(h.Since) < time.Hour {
			t.Errorf("%+v", h)
		}
		s.recover()
		s.put("a")
		time.Sleep(2 * time.Minute)
		c.told(t, "add a@2/u1 (initial)", "update a@2/u1 -> a@3/u1")
		if err := c.inf.Health().Err; err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(log.GetSink().(ktesting.Underlier).GetBuffer().String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "cannot watch pods") ||
			!strings.Contains(lines[1], "Listing and watching resource again") {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	})
}

// TestTokenIsReadAgain (case 15): after a 401 the informer retries, and within a minute uses the new content of the
// token file.
//
// Source: NewCachedFileTokenSource in k8s.io/client-go/transport v0.37.2 reads the file again after 50 s.
func TestTokenIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		must(0, os.WriteFile(file, []byte("old"), 0o600))
		api := answer(func(r *http.Request) (int, string, []byte) {
			if r.Header.Get("Authorization") != "Bearer new" {
				status := apierrors.NewUnauthorized("the token has expired").Status()
				return http.StatusUnauthorized, "application/json", wires["json"].list(t, &status)
			}
			return http.StatusOK, "application/json",
				wires["json"].list(t, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
		})
		f := must(
			NewFactory(&rest.Config{Host: "http://api.example", Transport: api, BearerTokenFile: file},
				FactoryOptions{}),
		)
		inf := NewSharedInformer(listwatch.NewRESTListerWatcher[*corev1.Pod](f.client, podResource),
			Options[*corev1.Pod]{Resource: "pods"})
		defer start(t, inf.Run)()
		synctest.Wait()
		if err := inf.Health().Err; !apierrors.IsUnauthorized(err) {
			t.Errorf("with the old token: %v", err)
		}
		must(0, os.WriteFile(file, []byte("new"), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // A minute, and the delay that is running then.
		defer cancel()
		if err := inf.WaitForSync(ctx); err != nil {
			t.Errorf("with the new token: %v", err)
		}
	})
}

// TestEventThatMakesNoSense (cases 16 and 17): an event that cannot be decoded, or has an unknown type, is not skipped.
// The watermark stays before it until a list shows what it was about.
func TestEventThatMakesNoSense(t *testing.T) {
	for name, upset := range map[string]func(*server){
		"garbage":      func(s *server) { s.cut(scriptedError("decode")) },
		"unknown type": func(s *server) { s.inject(sent("RENAMED", "a", "u1", "3")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.put("a")
				c, stop := followed(t, s, nil, Options[object]{})
				defer stop()
				c.told(t, "add a@2/u1 (initial)")
				s.fail([]error{&objects.DecodeError{What: "list", Err: errors.New("still garbage")}}, nil)
				upset(s)
				s.watches = nil // The watch delivers nothing after it.
				s.put("a")
				s.put("b")
				c.told(t)
				if rv := c.inf.ResourceVersion(); rv != "2" || c.inf.Health().Err == nil {
					t.Errorf("watermark %s, %+v", rv, c.inf.Health())
				}
				time.Sleep(time.Minute)
				c.told(t, "update a@2/u1 -> a@3/u1", "add b@4/u2")
				st := c.inf.Stats()
				if err := c.inf.Health().Err; err != nil || st.ResourceVersion != "4" ||
					st.RelistReasons["malformed"] != 2 {
					t.Errorf("%v, %+v", err, st)
				}
			})
		})
	}
}

// TestServerHangsUp (case 12): a server or proxy that ends connections without an answer, or after old news, is not
// asked in a hot loop.
func TestServerHangsUp(t *testing.T) {
	for name, ending := range map[string]func(s *server) listwatch.Watch[object]{
		"without an answer": nil,
		"after a bookmark": func(s *server) listwatch.Watch[object] {
			said := false
			return watchFunc(func(context.Context) (listwatch.Event[object], error) {
				if said {
					return listwatch.Event[object]{}, io.EOF
				}
				said = true
				return listwatch.Event[object]{Type: listwatch.Bookmark, ResourceVersion: "2"}, nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.put("a")
				lw := &proxied{server: s}
				if ending == nil {
					s.fail(
						nil, slices.Repeat([]error{&url.Error{Op: "Get", URL: "https://api.example/", Err: io.EOF}},
							1000),
					)
				} else {
					lw.watch = func(listwatch.WatchOptions, listwatch.Watch[object]) listwatch.Watch[object] {
						return ending(s)
					}
				}
				c, stop := followed(t, s, lw, Options[object]{})
				defer stop()
				time.Sleep(time.Hour)
				lists, _, watches := c.counts()
				if lists != 1 || watches < 30 || watches > 200 || c.inf.Health().Err == nil && ending == nil {
					t.Errorf("in an hour: %d lists, %d watches, %+v", lists, watches, c.inf.Health())
				}
			})
		})
	}
}

// TestBusyServer (cases 15 and 49): if a server answers every watch with 429, the informer watches as slowly as the
// server asks, and never lists.
func TestBusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		_ = c.asked()
		s.fail(nil, slices.Repeat([]error{errTooManyFor(20)}, 1000))
		s.cut(errTooManyFor(20))
		time.Sleep(10 * time.Minute)
		if lists, verifies, watches := c.counts(); lists+verifies > 0 || watches < 9 || watches > 30 {
			t.Errorf("in ten minutes: %d lists, %d verifications, %d watches", lists, verifies, watches)
		}
		s.recover()
		s.put("a")
		time.Sleep(time.Minute)
		c.told(t, "add a@2/u1")
	})
}

// TestBusyList (cases 15 and 49): the same for lists.
func TestBusyList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.fail(slices.Repeat([]error{errTooManyFor(60)}, 3), nil)
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		for range 3 {
			time.Sleep(time.Minute - 1)
			synctest.Wait()
			if lists, _, watches := c.counts(); lists != 1 || watches > 0 || c.inf.HasSynced() {
				t.Errorf("%d lists, %d watches before the server wanted", lists, watches)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
		}
		if !c.inf.HasSynced() {
			t.Error("not synced when it could be")
		}
	})
}

// TestWatchWithoutList (case 15): a client that may no longer list may still watch.
func TestWatchWithoutList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		s.fail(slices.Repeat([]error{scriptedError("403")}, 1000), nil)
		s.cut(scriptedError("reset"))
		time.Sleep(time.Minute)
		s.put("a")
		c.told(t, "add a@2/u1")
	})
}

// TestRestoredVersionsAreNotBelieved (case 26): after a restore the server assigns versions a second time, to other
// states.
func TestRestoredVersionsAreNotBelieved(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.put("a")
			s.put("b")
			c, stop := followed(t, s, nil, Options[object]{StreamLists: stream})
			defer stop()
			s.put("a") // @4
			s.put("b") // @5
			s.put("b") // @6
			synctest.Wait()
			_ = c.take()
			s.restore(3)
			s.put("a") // @4 again
			s.cut(scriptedError("reset"))
			time.Sleep(time.Minute)
			c.told(t, "update a@4/u1 -> a@4/u1", "update b@6/u2 -> b@3/u2")
			a, _ := c.inf.Get("default", "a")
			if st := c.inf.Stats(); st.Rebuilds != 1 || st.ResourceVersion != "4" || a != s.objects["default/a"] {
				t.Errorf("%+v, the cache holds generation %d of a", st, a.Generation)
			}
		})
	}
}

// TestUnreadableObject (case 16): an object that cannot be decoded shows in health and statistics, and once in the log.
// It does not keep an informer from syncing.
func TestUnreadableObject(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.garble("default", "bad")
			s.put("good")
			log := ktesting.NewLogger(ktesting.NopTL{},
				ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
			c := &caseRun{
				server: s, recorder: &recorder{},
				inf: NewSharedInformer[object](s, Options[object]{Resource: "pods", StreamLists: stream}),
			}
			must(c.inf.AddHandler(c.recorder.handler(), HandlerOptions{}))
			defer start(t, func(ctx context.Context) error { return c.inf.Run(klog.NewContext(ctx, log)) })()
			c.told(t, "add good@3/u2 (initial)")
			h, st := c.inf.Health(), c.inf.Stats()
			var decode *objects.DecodeError
			if !h.Synced || h.Err != nil || h.Unreadable != 1 || !errors.As(h.UnreadableErr, &decode) ||
				decode.Key != "default/bad" || st.Unreadable != 1 {
				t.Errorf("health %+v, stats %+v", h, st)
			}
			if st.ResourceVersion != "3" || st.Errors > 0 {
				t.Errorf("stats %+v", st)
			}
			s.garble("default", "bad")
			s.cut(errExpired)
			time.Sleep(time.Minute)
			if lines := log.GetSink().(ktesting.Underlier).GetBuffer().String(); strings.Count(lines,
				"Failed to decode object") != 1 {
				t.Errorf("log:\n%s", lines)
			}
		})
	}
}
