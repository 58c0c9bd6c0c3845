package simtest

import (
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestBlockers: a goroutine of the bubble that waits for a mutex or for a socket is shown, and no other.
func TestBlockers(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var mutex sync.Mutex
		mutex.Lock()
		var durable, done sync.WaitGroup
		durable.Add(1)
		done.Go(durable.Wait)
		done.Go(func() {
			mutex.Lock()
			defer mutex.Unlock()
		})
		// A stack names its goroutine and the one that made it.
		wait := func() string {
			for {
				runtime.Gosched()
				if waits := blockers(bubbleName()); strings.Count(waits, "goroutine ") == 2 {
					return waits
				}
			}
		}
		if waits := wait(); !strings.Contains(waits, "Mutex") {
			t.Errorf("the stacks are\n%s", waits)
		}
		if other := blockers("synctest bubble 0"); other != "" {
			t.Errorf("another bubble has\n%s", other)
		}
		mutex.Unlock()
		port, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done.Go(func() { _, _ = port.Accept() })
		if waits := wait(); !strings.Contains(waits, "IO wait") || !strings.Contains(hangs("T", waits), "port") {
			t.Errorf("the stacks are\n%s", waits)
		}
		if err := port.Close(); err != nil {
			t.Error(err)
		}
		durable.Done()
		done.Wait()
	})
}

// TestShortBudget: a test that passes because its budget has ended prints what to set, also without -v. With enough
// time there is nothing to print.
func TestShortBudget(t *testing.T) {
	s := Scenario{
		Build: newCopier(1), Script: func(u *User) { u.Create(sources()[0]) }, Budget: time.Nanosecond,
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stderr
	os.Stderr = write
	Check(t, s)
	os.Stderr = old
	_ = write.Close()
	text, err := io.ReadAll(read)
	want := regexp.MustCompile(`^simtest: TestShortBudget: the budget of 1ns has ended after 0 of 33 runs with one fault ` +
		`at a write. Set Scenario.Budget to (\S+), or run go test with -sim.budget=(\S+)\n$`)
	if m := want.FindStringSubmatch(string(text)); err != nil || m == nil || m[1] != m[2] {
		t.Errorf("printed %q, %v", text, err)
	}
	c := newChecker(t, &s, Options{Runs: 40, Budget: time.Hour})
	if c.check(); c.tally.Runs != 40 || c.short(time.Second) != "" {
		t.Errorf("after %d runs: %q", c.tally.Runs, c.short(time.Second))
	}
}
