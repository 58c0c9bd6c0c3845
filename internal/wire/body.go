package wire

import (
	"bytes"
	"io"
	"net/http"
)

// Body is the body of a request or of a response that is in memory.
type Body struct {
	bytes.Reader
	data []byte
}

// NewBody returns a body that reads data.
func NewBody(data []byte) *Body {
	b := &Body{data: data}
	b.Reset(data)
	return b
}

// Close implements [io.Closer].
func (b *Body) Close() error { return nil }

// maxAnnounced bounds the memory that is allocated because of a Content-Length alone, in bytes.
const maxAnnounced = 1 << 20

// ReadBody returns the body of a response. It does not copy a [Body] of which nothing has been read. The caller closes
// the body, and must not change what ReadBody returned.
func ReadBody(r *http.Response) ([]byte, error) {
	if b, whole := r.Body.(*Body); whole && b.Len() == len(b.data) {
		return b.data, nil
	}
	if r.ContentLength <= 0 || r.ContentLength > maxAnnounced {
		return io.ReadAll(r.Body)
	}
	b := bytes.NewBuffer(make([]byte, 0, r.ContentLength+bytes.MinRead)) // With room to read the end.
	_, err := b.ReadFrom(r.Body)
	return b.Bytes(), err
}
