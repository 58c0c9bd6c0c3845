package process_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// kills is how often TestKill kills, unless FLYBALL_KILLS says.
const kills = 3

// The program is killed at random moments of the scenario and started again, until it was killed often enough. However often that
// was, the scenario comes to its end, with the outcome that it has when nobody is killed; and then nothing is written any more.
func TestKill(t *testing.T) {
	wanted := kills
	if n, err := strconv.Atoi(os.Getenv("FLYBALL_KILLS")); err == nil {
		wanted = n
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	want, took := play(t, nil)
	t.Logf("in peace, it takes %v and the outcome is\n%s", took, want)
	for done := 0; done < wanted; {
		left := min(wanted-done, 6)
		pauses := make([]time.Duration, left)
		for i := range pauses {
			pauses[i] = time.Duration(random.Int64N(int64(took) * 2 / int64(left+1)))
		}
		got, _ := play(t, pauses)
		if done += left; got != want {
			t.Fatalf("after %d kills, %v apart, the outcome is\n%s\nwant\n%s", left, pauses, got, want)
		}
	}
}

// play plays the scenario to its end while the program lives as long as each of the pauses says, and then in peace.
func play(t *testing.T, pauses []time.Duration) (outcome string, took time.Duration) {
	t.Helper()
	w := newWorld(t)
	c := w.spawn("no")
	begin := time.Now()
	played := make(chan error, 1) // what came of the play
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	go func() { played <- w.stage.Play(ctx) }()
	for _, pause := range pauses {
		time.Sleep(pause)
		w.must(c.Process.Kill())
		_ = c.Wait() // which says that it was killed
		if strings.Contains(c.output(), "DATA RACE") {
			t.Errorf("the race detector found something:\n%s", c.output())
		}
		c = w.spawn("no")
	}
	if err := <-played; err != nil {
		t.Fatalf("after %d kills: %v\n%s", len(pauses), err, c.output())
	}
	took = time.Since(begin)
	outcome = w.settled()
	w.must(c.Process.Kill())
	_ = c.Wait()
	return outcome, took
}

// settled is the outcome when nothing was written for a second.
func (w *world) settled() string {
	w.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		w.forget()
		time.Sleep(time.Second)
		writes := w.writes()
		if len(writes) == 0 {
			break
		}
		if time.Now().After(deadline) {
			w.Fatalf("it does not come to rest: %v", writes)
		}
	}
	outcome, err := w.stage.Outcome(w.ctx)
	w.must(err)
	return outcome
}
