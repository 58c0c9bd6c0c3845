// Package bodies bounds the memory of the request bodies that a server holds at the same time.
package bodies

import (
	"errors"
	"io"
	"sync/atomic"
)

// ErrFull is the error of a body for which there is no room beside the others.
var ErrFull = errors.New("the bodies of the requests under way fill the memory that they may have")

// Budget bounds the bytes of all bodies that are read and not released. Decoded, a body takes several times as much.
//
// Concurrency: all methods may be called from any goroutine.
type Budget struct {
	most int64
	used atomic.Int64
}

// New returns a Budget of that many bytes.
func New(most int64) *Budget { return &Budget{most: most} }

// Read reads a body, but at most limit+1 bytes, so that the caller can tell a body that is too large. What is read
// counts until the caller calls release, once. What a client announces and does not send takes no room from others.
//
// Errors: [ErrFull]; those of the body.
func (b *Budget) Read(body io.Reader, limit int64) (text []byte, release func(), err error) {
	c := &counter{in: body, budget: b}
	if text, err = io.ReadAll(io.LimitReader(c, limit+1)); err != nil {
		c.release()
		return nil, func() {}, err
	}
	return text, c.release, nil
}

// counter counts what is read of a body.
type counter struct {
	in     io.Reader
	budget *Budget
	read   int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.read += int64(n)
	if c.budget.used.Add(int64(n)) > c.budget.most {
		return n, ErrFull
	}
	return n, err
}

func (c *counter) release() {
	c.budget.used.Add(-c.read)
	c.read = 0
}
