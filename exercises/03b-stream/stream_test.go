package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// step is an event of a stream, after a delay.
type step struct {
	after time.Duration
	event kube.Event
}

// server sends the same steps in every stream.
type server struct {
	steps []step
	// silent streams stay open after the last step; others are closed after it.
	silent bool
	// stuck requests for a stream are not answered at all.
	stuck   bool
	refuse  bool
	listErr error

	streams, lists, open int
}

func (s *server) Stream(ctx context.Context) (kube.Watch, error) {
	s.streams++
	if s.refuse {
		return nil, ErrRefused
	}
	if s.stuck {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.open++
	return &open{ctx: ctx, s: s, steps: s.steps}, nil
}

// List returns what is there by now: web-2 has been deleted.
func (s *server) List(ctx context.Context) (kube.List, error) {
	s.lists++
	if ctx.Err() != nil {
		return kube.List{}, fmt.Errorf("list: %w", ctx.Err())
	}
	return kube.List{Objects: []*kube.Object{{Name: "web-1"}, {Name: "web-3"}}, Version: 30}, s.listErr
}

type open struct {
	ctx   context.Context
	s     *server
	steps []step
}

func (o *open) Next() (kube.Event, error) {
	if len(o.steps) == 0 {
		if o.s.silent {
			<-o.ctx.Done()
			return kube.Event{}, o.ctx.Err()
		}
		return kube.Event{}, io.EOF
	}
	next := o.steps[0]
	o.steps = o.steps[1:]
	select {
	case <-time.After(next.after):
		return next.event, nil
	case <-o.ctx.Done():
		return kube.Event{}, o.ctx.Err()
	}
}

func (o *open) Close() { o.s.open-- }

func added(after time.Duration, name string, version int) step {
	return step{after, kube.Event{Type: kube.Added, Object: &kube.Object{Name: name, Version: version}}}
}

var mark = step{0, kube.Event{Type: kube.Bookmark, Object: &kube.Object{
	Version: 20, Annotations: map[string]string{"k8s.io/initial-events-end": "true"},
}}}

// start calls Start, with a timeout of ten minutes.
func start(t *testing.T, s *server) (got string, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		began := time.Now()
		all, failed := Start(ctx, s)
		var names []string
		for _, o := range all.Objects {
			names = append(names, o.Name)
		}
		got, took, err = fmt.Sprintf("%s at %d", strings.Join(names, " "), all.Version), time.Since(began), failed
		if s.open > 0 {
			t.Errorf("Start has returned, and %d streams are still open.", s.open)
		}
	})
	return got, took, err
}

func Test1AGoodServer(t *testing.T) {
	s := &server{steps: []step{
		added(0, "web-2", 12),
		{0, kube.Event{Type: kube.Bookmark, Object: &kube.Object{Version: 13}}},
		added(time.Second, "web-1", 14),
		{0, kube.Event{Type: kube.Deleted, Object: &kube.Object{Name: "web-2", Version: 15}}},
		added(0, "web-3", 16), mark,
	}, silent: true}
	got, _, err := start(t, s)
	if err != nil || got != "web-1 web-3 at 20" || s.lists > 0 {
		t.Fatalf("The server streamed web-1, web-2 and web-3, deleted web-2 meanwhile, and sent the mark at version "+
			"20. Start returned %s, the error %v, and made %d lists.", got, err, s.lists)
	}
}

func Test2TheMarkDoesNotCome(t *testing.T) {
	s := &server{steps: []step{added(time.Second, "web-1", 11), added(time.Second, "web-2", 12)}}
	got, took, err := start(t, s)
	if err != nil {
		t.Fatalf("The server sends two objects, closes the stream, and never sends the mark. After ten minutes Start "+
			"has opened %d streams and is not through: %v.\nNothing of the program that waits for it works, and "+
			"there is no error to read.", s.streams, err)
	}
	if got != "web-1 web-3 at 30" {
		t.Fatalf("Start returned %s. The stream ended before the mark, so what it had told is no list: by now web-2 "+
			"is gone. The server's list says web-1 web-3 at 30.", got)
	}
	if took > time.Minute {
		t.Fatalf("Start needed %v. The whole program waits for it.", took)
	}
}

func Test3AServerThatRefuses(t *testing.T) {
	s := &server{refuse: true}
	got, took, err := start(t, s)
	if err != nil || got != "web-1 web-3 at 30" || took > 0 {
		t.Fatalf("The server does not stream lists. Start returned %s after %v, and the error %v.", got, took, err)
	}
}

func Test4AServerThatSaysNothing(t *testing.T) {
	for _, s := range []*server{{silent: true}, {silent: true, steps: []step{added(0, "web-1", 11)}}, {stuck: true}} {
		happened := fmt.Sprintf("The server sends %d objects and then nothing", len(s.steps))
		if s.stuck {
			happened = "The server does not even open the stream"
		}
		got, took, err := start(t, s)
		if took > 2*Quiet {
			t.Fatalf("%s. Start needed %v. A stream may be quiet for %v, and not longer.", happened, took, Quiet)
		}
		if err != nil || got != "web-1 web-3 at 30" || took < Quiet {
			t.Fatalf("%s. After %v Start returned %s and the error %v. It should give up the stream after %v, and "+
				"list; the context that ends the stream must not end the list.", happened, took, got, err, Quiet)
		}
	}
}

func Test5ASlowServer(t *testing.T) {
	s := &server{silent: true}
	for n := range 60 {
		s.steps = append(s.steps, added(5*time.Second, fmt.Sprintf("web-%02d", n), 100+n))
	}
	s.steps = append(s.steps, mark)
	got, took, err := start(t, s)
	if err != nil || s.lists > 0 || took != 5*time.Minute {
		t.Fatalf("The server sends an object every five seconds, sixty in all, and then the mark. Start returned "+
			"%.20s… after %v, the error %v, and made %d lists.\nA stream that makes progress is no failure, however "+
			"long it is.", got, took, err, s.lists)
	}
}

func Test6TheListFailsAsWell(t *testing.T) {
	down := errors.New("503: no server")
	s := &server{listErr: down}
	if _, _, err := start(t, s); !errors.Is(err, down) {
		t.Fatalf("The stream ended before the mark, and the list failed with %q. Start returned the error %v: "+
			"whoever calls it has to know.", down, err)
	}
}

func Test7TheProgramStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{silent: true}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := Start(ctx, s)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second || s.lists > 0 {
			t.Fatalf("The context ended after a second. Start returned %v after %v, and made %d lists. It should "+
				"return the error of the context, at once.", err, time.Since(began), s.lists)
		}
	})
}
