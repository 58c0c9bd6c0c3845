package demo

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/client"
	appsv1 "k8s.io/api/apps/v1"
)

// stage is a director whose cluster is a number that the test moves.
type stage struct {
	director
	n       atomic.Int64
	changes chan struct{}
	out     bytes.Buffer
}

func newStage() *stage {
	s := &stage{changes: make(chan struct{}, 1)}
	s.director = director{
		look:    func() state { return state{} },
		changed: s.changes,
		counts:  func() counts { n := uint64(s.n.Load()); return counts{watch: 3 * n, queue: 2 * n, sync: n} },
		screen:  &screen{w: &s.out},
		timeout: 10 * time.Second,
		board:   &board{},
	}
	return s
}

func (s *stage) set(n int64) { s.n.Store(n); s.changes <- struct{}{} }

// reach is a step that is done at n.
func (s *stage) reach(n int64, hold time.Duration) step {
	return step{
		title: "reach it", hold: hold,
		do: func(context.Context, client.Client) error { return nil },
		until: func(state) progress {
			p := progress{have: int(s.n.Load()), want: int(n), text: "moving"}
			if p.have != p.want {
				p.missing = "another number"
			}
			return p
		},
	}
}

func TestPlayWaitsForEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		go func() {
			time.Sleep(time.Second)
			s.set(1)
			time.Sleep(time.Second)
			s.set(2)
		}()
		if err := s.play(t.Context(), []step{s.reach(1, 0), s.reach(2, 0)}); err != nil {
			t.Fatal(err)
		}
		got := strings.Split(strings.TrimSpace(s.out.String()), "\n")
		if len(got) != 2 || !strings.Contains(got[1], "watch    3 → queue    2 → sync    1      1s") {
			t.Errorf("got %q", got)
		}
		if now := s.board.read().(telling); now.At != 1 || now.Text != "moving" || now.Missing != "" {
			t.Errorf("the page shows %+v", now)
		}
	})
}

// An outcome that must last is not met by passing through it.
func TestOutcomeMustLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		start := time.Now()
		go func() {
			s.set(1) // met, but only for one second
			time.Sleep(time.Second)
			s.set(2)
			time.Sleep(time.Second)
			s.set(1)
		}()
		if err := s.play(t.Context(), []step{s.reach(1, 3*time.Second)}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("done after %s, want 5s", took)
		}
	})
}

func TestStepThatDoesNotConvergeSaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		never := s.reach(2, 0)
		err := s.play(t.Context(), []step{s.reach(1, 0), never}[1:])
		var unmet *unmetError
		if !errors.As(err, &unmet) || err.Error() != `"reach it" did not converge within 10s: expected another number` {
			t.Errorf("got %v", err)
		}
		if now := s.board.read().(telling); now.At != 0 || now.Missing != "another number" {
			t.Errorf("the page shows %+v", now)
		}
		if !strings.Contains(s.out.String(), "FAILED after 10s") {
			t.Errorf("the screen shows %q", s.out.String())
		}
	})
}

func TestInterruptedStepSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		err := s.play(ctx, []step{s.reach(2, 0)})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `stopped at "reach it"`) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRolledOutNeedsTheNewGenerationObserved(t *testing.T) {
	d := &appsv1.Deployment{}
	d.Generation = 2
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 5, UpdatedReplicas: 5, AvailableReplicas: 5}
	if p := (state{deployment: d}).rolledOut(5, "x"); p.missing == "" {
		t.Error("a Deployment whose change was not seen yet counts as rolled out")
	}
	d.Status.ObservedGeneration = 2
	if p := (state{deployment: d}).rolledOut(5, "x"); p.missing != "" || p.have != 5 {
		t.Errorf("a complete Deployment does not count as rolled out: %+v", p)
	}
}
