package optest

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Rounds returns how often to repeat something: the value of an environment variable, or otherwise if it is not set.
func Rounds(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// Seed returns a random seed and logs it, so that a run can be repeated.
func Seed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

// Await waits until describe returns want, while p runs.
func Await(t *testing.T, p *Process, want string, describe func() string) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := describe()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the state is\n%s\nwant\n%s\nthe operator printed:\n%s", got, want, p.Kill())
		}
	}
}

// Settled polls describe until its result stays the same for a while, and returns it.
func Settled(describe func() string) (last string) {
	for same := 0; same < 15; time.Sleep(20 * time.Millisecond) {
		if now := describe(); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return last
}
