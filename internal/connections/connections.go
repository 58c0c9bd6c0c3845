package connections

import (
	"net"
	"net/http"
	"sync"
)

// Bound bounds the connections of an [http.Server], whose ConnState hook is Note.
type Bound struct {
	most int

	mu sync.Mutex
	// open has the connections, each with when it began to wait for a request: a number that grows. It is 0 while a
	// request is under way.
	open  map[net.Conn]uint64
	clock uint64
}

// New returns a bound of at most that many connections.
func New(most int) *Bound { return &Bound{most: most, open: map[net.Conn]uint64{}} }

// Share returns how many connections a server may have that gets the given part of the process's file descriptors: 2
// means half of them. It is between 8 and 4,096.
func Share(part int) int { return min(max(descriptors()/part, 8), 4096) }

// Note is the ConnState hook.
func (b *Bound) Note(c net.Conn, state http.ConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch state {
	case http.StateNew, http.StateIdle:
		if state == http.StateNew && len(b.open) >= b.most && !b.makeRoomLocked() {
			closeNow(c)
			return
		}
		b.clock++
		b.open[c] = b.clock
	case http.StateActive:
		b.open[c] = 0
	default:
		delete(b.open, c)
	}
}

// makeRoomLocked closes the connection that has waited for longest. It reports false if none waits.
func (b *Bound) makeRoomLocked() bool {
	var oldest net.Conn
	for c, since := range b.open {
		if since > 0 && (oldest == nil || since < b.open[oldest]) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	delete(b.open, oldest)
	closeNow(oldest)
	return true
}

// CloseWaiting closes the connections that wait for a request. [http.Server.Shutdown] would wait five seconds for those
// on which none has arrived yet, which clients open in reserve.
func (b *Bound) CloseWaiting() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c, since := range b.open {
		if since > 0 {
			delete(b.open, c)
			closeNow(c)
		}
	}
}

// closeNow closes a connection without a word. A TLS connection would send one, and wait until its client takes it.
func closeNow(c net.Conn) {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	_ = c.Close() // the client notices, if it is still there
}
