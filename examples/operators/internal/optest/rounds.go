package optest

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Rounds is how often something is to be done: what an environment variable says, if it is set.
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

// Seed is one that is told, so that a round can be understood later.
func Seed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

// Await waits until what describe says is want, which p has to see to.
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

// Settled is what describe says once it has said the same for a while.
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
