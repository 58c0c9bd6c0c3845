package connections

import (
	"io"
	"net"
	"net/http"
	"testing"
)

// peer is the far end of a connection.
func peer(t *testing.T) (near, far net.Conn) {
	near, far = net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	return near, far
}

func closed(far net.Conn) bool {
	_, err := far.Write([]byte("x"))
	return err == io.ErrClosedPipe
}

// TestTheOneThatWaitsForLongestGivesWay: connections with a request under way stay, and of the others those that began
// to wait last. If none waits, the new one is closed.
func TestTheOneThatWaitsForLongestGivesWay(t *testing.T) {
	b := New(3)
	var near, far [6]net.Conn
	for i := range near {
		near[i], far[i] = peer(t)
	}
	drain := func(c net.Conn) { go func() { _, _ = io.Copy(io.Discard, c) }() }
	for _, c := range near {
		drain(c)
	}
	b.Note(near[0], http.StateNew)
	b.Note(near[1], http.StateNew)
	b.Note(near[2], http.StateNew)
	b.Note(near[0], http.StateActive)
	b.Note(near[0], http.StateIdle) // waits since after 2 does
	b.Note(near[1], http.StateActive)
	b.Note(near[3], http.StateNew)
	if !closed(far[2]) || closed(far[0]) || closed(far[1]) || closed(far[3]) {
		t.Fatal("the third connection waited for longest and was not the one to be closed")
	}
	b.Note(near[4], http.StateNew)
	if !closed(far[0]) {
		t.Fatal("the first connection waited for longest and was not closed")
	}
	b.Note(near[3], http.StateActive)
	b.Note(near[4], http.StateActive)
	b.Note(near[5], http.StateNew)
	if !closed(far[5]) || closed(far[1]) || closed(far[3]) || closed(far[4]) {
		t.Fatal("all connections had requests under way, and the new one was not closed")
	}
	b.Note(near[5], http.StateClosed)
	b.Note(near[1], http.StateClosed)
	if len(b.open) != 2 {
		t.Errorf("%d connections are open, want 2", len(b.open))
	}
}

func TestShare(t *testing.T) {
	if all, half := Share(1), Share(2); half < 8 || all > 4096 || half > all {
		t.Errorf("all: %d, half: %d", all, half)
	}
	if few := Share(1 << 30); few != 8 {
		t.Errorf("the least share is %d, want 8", few)
	}
}
