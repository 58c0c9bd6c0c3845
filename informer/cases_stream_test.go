package informer

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/informer/listwatch"
)

// The tests of this file are about streamed lists (case 22).

// TestStreamCutBeforeItsEnd (case 22): no object of a streamed list is published before the list is complete.
func TestStreamCutBeforeItsEnd(t *testing.T) {
	for _, how := range []string{"reset", "eof", "410", "500", "decode"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.put("a")
				s.put("b")
				s.endless = true
				s.fail([]error{scriptedError("500")}, nil) // Otherwise the answer is a list, which takes longer.
				c, stop := followed(t, s, nil, Options[object]{StreamLists: true})
				defer stop()
				time.Sleep(time.Second)
				s.cut(scriptedError(how))
				synctest.Wait()
				if c.inf.HasSynced() || len(c.inf.List("", nil)) > 0 {
					t.Errorf("synced %v with half of a list: %v", c.inf.HasSynced(), c.inf.List("", nil))
				}
				c.told(t)
				s.mu.Lock()
				s.endless = false
				s.mu.Unlock()
				time.Sleep(5 * time.Minute)
				c.told(t, "add a@2/u1 (initial)", "add b@3/u2 (initial)")
			})
		})
	}
}

// TestStreamNeverCompletes (case 22): if a server or proxy ends every streamed list before it is complete, the informer
// lists instead.
func TestStreamNeverCompletes(t *testing.T) {
	for _, how := range []string{"eof", "reset", "500", "decode"} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.put("a")
			s.endless = true
			watch := func(o listwatch.WatchOptions, w listwatch.Watch[object]) listwatch.Watch[object] {
				if o.SendInitialEvents {
					s.cut(scriptedError(how))
				}
				return w
			}
			c, stop := followed(t, s, &proxied{server: s, watch: watch}, Options[object]{StreamLists: true})
			defer stop()
			if !c.inf.HasSynced() {
				t.Errorf("%s: not synced: %v", how, c.inf.Health().Err)
			}
			c.told(t, "add a@2/u1 (initial)")
		})
	}
}

// TestStreamSaysNothing (case 22): a streamed list that does not begin is given up like one that does not end, whether
// the server answers or not.
func TestStreamSaysNothing(t *testing.T) {
	for _, answers := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.endless = true
			var lw listwatch.ListerWatcher[object] = s
			if !answers {
				lw = unanswered{s}
			}
			c, stop := followed(t, s, lw, Options[object]{StreamLists: true})
			defer stop()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if !c.inf.HasSynced() {
				t.Errorf("answers %v: not synced: %v", answers, c.inf.Health().Err)
			}
		})
	}
}

// TestStreamIsTriedAgain (case 22): a missing permission to list is not taken for a server that cannot stream.
func TestStreamIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.fail([]error{scriptedError("403")}, []error{scriptedError("403")})
		c, stop := followed(t, s, nil, Options[object]{StreamLists: true})
		defer stop()
		time.Sleep(time.Minute)
		_ = c.asked()
		s.cut(errExpired)
		time.Sleep(time.Minute)
		if asked := c.asked(); len(asked) != 1 || !strings.Contains(asked[0], "with initial events") {
			t.Errorf("asked %q", asked)
		}
	})
}

// unanswered is a server that does not answer requests for streamed lists.
type unanswered struct{ *server }

func (u unanswered) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Watch[object], error) {
	if o.SendInitialEvents {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return u.server.Watch(ctx, o)
}
