package simtest

import (
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
