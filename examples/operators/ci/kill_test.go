package main

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/kit"
	"github.com/flyball-dev/flyball/localapi/audit"
)

// kills is how often TestKill kills, unless FLYBALL_KILLS says.
const kills = 3

// plenty is about how often the program writes in a play.
const plenty = 60

// death is when a process is killed: after so many writes, and a moment.
type death struct {
	writes int
	moment time.Duration
}

// The program is killed at random moments of the scenario and started again, until it was killed often enough.
// However often that was, the scenario comes to its end, with the outcome that it has when nobody is killed; and then
// nothing is written any more.
func TestKill(t *testing.T) {
	kit.Guard(t)
	t.Parallel()
	wanted := kills
	if n, err := strconv.Atoi(os.Getenv("FLYBALL_KILLS")); err == nil {
		wanted = n
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for done := 0; done < wanted; {
		deaths := make([]death, min(wanted-done, 6))
		for i := range deaths {
			deaths[i] = death{
				random.IntN(2 * plenty / (len(deaths) + 1)),
				time.Duration(random.Int64N(int64(200 * time.Millisecond))),
			}
		}
		got := play(t, deaths)
		if done += len(deaths); got != Ending {
			t.Fatalf("after %v the outcome is\n%s\nwant\n%s", deaths, got, Ending)
		}
	}
}

// play plays the scenario to its end while the program dies as often as there are deaths, and then in peace.
func play(t *testing.T, deaths []death) (outcome string) {
	t.Helper()
	w := newPrograms(t)
	args := Args(w.stage.Dir)
	c := w.spawn(first, args...)
	ctx, cancel := context.WithCancel(w.Ctx)
	defer cancel()
	var failed error
	ended := make(chan struct{}) // closed by the play, when it has set failed
	go func() {
		defer close(ended)
		failed = w.stage.Play(ctx)
	}()
	over := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	written := func() int {
		return len(slices.DeleteFunc(w.writes(), func(e audit.Entry) bool { return e.User != first }))
	}
	for _, d := range deaths {
		for born := written(); written() < born+d.writes && !over(); {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(d.moment)
		w.Must(c.Process.Kill())
		_ = c.Wait() // which says that it was killed
		if strings.Contains(c.output(), "DATA RACE") {
			t.Errorf("the race detector found something:\n%s", c.output())
		}
		c = w.spawn(first, args...)
	}
	if <-ended; failed != nil {
		t.Fatalf("after %v: %v\n%s", deaths, failed, c.output())
	}
	t.Logf("%d writes", written())
	w.Until("the last one runs", func() bool { return strings.Contains(c.output(), "Manager started") })
	outcome = w.settled()
	w.Must(c.Process.Kill())
	_ = c.Wait()
	return outcome
}

// settled is the outcome when it is that of the end, and nothing was written for a second: what the last process
// found it may have to tidy up first. It is any other when that does not come.
func (w *programs) settled() (outcome string) {
	w.Helper()
	var last []audit.Entry
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		w.forget()
		time.Sleep(time.Second)
		var err error
		outcome, err = w.stage.Outcome(w.Ctx)
		w.Must(err)
		writes := w.writes()
		if outcome == Ending && len(writes) == 0 {
			return outcome
		}
		last = writes
	}
	w.Errorf("it does not come to rest: %v", last)
	return outcome
}
