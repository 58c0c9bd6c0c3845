package localapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/codec"
)

// memoryHost is the host in the URLs of requests that never leave the process.
const memoryHost = "http://localapi"

// RESTConfig returns a client configuration that reaches the server without a socket, and without the client-side rate
// limit that client-go has by default.
func (s *Server) RESTConfig() *rest.Config { return s.config(&s.admin) }

func (s *Server) config(user *auth.User) *rest.Config {
	config := &rest.Config{Host: memoryHost, Transport: transport{server: s, user: user}, QPS: -1}
	if !codec.HasProtobuf(&corev1.Pod{}) {
		config.ContentType = runtime.ContentTypeJSON // The clients' default is protobuf.
	}
	return config
}

// transport is an [http.RoundTripper] that calls the server's handler.
//
// A request that can take time runs in a goroutine of its own, which Close waits for. These are watches and, if there
// is a gate, all requests. A client that gives up then leaves the server at work, as over a network. Any other request
// runs in the client's goroutine: switching goroutines and growing a new stack would cost as much as a get. It is
// mostly computation. It may wait for webhooks, up to 34 seconds, or for a version that the store has not reached. The
// client's context ends these waits.
type transport struct {
	server *Server
	user   *auth.User
}

// errServerClosed is the error that a client of a closed server gets. It is the same as from a port that nobody listens
// on.
var errServerClosed = &transportError{op: "dial", err: syscall.ECONNREFUSED}

// transportError is a failure of the connection.
type transportError struct {
	op  string
	err error
}

func (e *transportError) Error() string { return "localapi: " + e.op + ": " + e.err.Error() }
func (e *transportError) Unwrap() error { return e.err }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	h := t.server.handler
	return t.server.roundTrip(r, h, t.user, h.AnswersAtOnce(r))
}

// roundTrip has h answer a request of a user. user may be nil. atOnce means that h does so in this goroutine.
func (s *Server) roundTrip(r *http.Request, h http.Handler, user *auth.User, atOnce bool) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		closeBody(r)
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	rw := &response{header: http.Header{}, cancel: cancel}
	if !s.enter(rw) {
		cancel()
		closeBody(r)
		return nil, errServerClosed
	}
	if user != nil {
		ctx = auth.WithUser(ctx, user)
	}
	request := r.WithContext(ctx)
	if request.Body == nil {
		request.Body = http.NoBody
	}
	request.RequestURI = r.URL.RequestURI()
	request.RemoteAddr = "memory"
	serve := func() {
		defer s.leave(rw)
		defer closeBody(r)
		rw.serve(h, request)
	}
	if atOnce {
		serve()
		return rw.result(r)
	}
	rw.started, rw.cancelled = make(chan struct{}), ctx.Done()
	go func() {
		deepen(0)
		serve()
	}()
	select {
	case <-rw.started:
		return rw.result(r)
	case <-r.Context().Done():
		cancel()
		rw.abandon()
		return nil, r.Context().Err()
	}
}

// deepen grows the stack of a new goroutine in one step, while there is nothing on it to copy. Growing it step by step
// below the handler took a tenth of the processor time of simulations, which hold all requests up by a gate.
//
//go:noinline
func deepen(at int) byte {
	var room [12 << 10]byte
	return room[at]
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// streamBuffer is how many bytes of a stream the server may send ahead of the client's reading, as a socket's buffers
// would hold.
const streamBuffer = 64 << 10

// response is both ends of an answer: the [http.ResponseWriter] of the handler, and the body that the client reads.
//
// If the handler never flushes, the client gets the whole answer when the handler returns. The first flush turns the
// response into a stream.
type response struct {
	header http.Header

	// cancel ends the handler's context.
	cancel context.CancelFunc

	// The handler's goroutine closes started when the client can have its answer: at the first flush, when the handler
	// returns, or when the connection breaks before either. cancelled is the Done channel of the handler's context.
	// Both are nil if the handler runs in the client's goroutine, where nothing waits for them.
	started   chan struct{}
	cancelled <-chan struct{}

	mu      sync.Mutex
	code    int
	buf     bytes.Buffer
	source  io.Reader // if not nil, what the client reads in place of buf
	size    int64     // the number of bytes in source, or -1
	stream  bool
	ready   bool  // the client can have its answer
	done    bool  // the handler has returned
	broken  error // why the connection broke; nil after an orderly end
	closed  bool  // the client has closed the body
	changed chan struct{}
}

// serve runs the handler. A handler that aborts breaks the connection.
func (w *response) serve(h http.Handler, r *http.Request) {
	defer w.cancel()
	var broken error = &transportError{op: "read", err: syscall.ECONNRESET}
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // compared as net/http does
			panic(p)
		}
		w.end(broken)
	}()
	h.ServeHTTP(w, r)
	broken = nil
}

func (w *response) end(broken error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done, w.broken = true, broken
	w.startLocked()
	w.wakeLocked()
}

// Header implements [http.ResponseWriter].
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *response) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.code = cmp.Or(w.code, code)
}

// Write implements [http.ResponseWriter]. On a stream it blocks while the client is far behind.
func (w *response) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.stream && !w.closed && w.buf.Len() > streamBuffer {
		if w.waitLocked(w.cancelled) {
			w.closed = true
		}
	}
	if w.closed {
		return 0, io.ErrClosedPipe
	}
	w.code = cmp.Or(w.code, http.StatusOK)
	n, err := w.buf.Write(b)
	w.wakeLocked()
	return n, err
}

// TakeBody makes b what the client reads. The handler writes nothing after it.
func (w *response) TakeBody(b io.Reader, size int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.code = cmp.Or(w.code, http.StatusOK)
	w.source, w.size = b, size
}

// Flush implements [http.Flusher].
func (w *response) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream = true
	w.startLocked()
}

func (w *response) startLocked() {
	if w.ready {
		return
	}
	w.ready, w.code = true, cmp.Or(w.code, http.StatusOK)
	if w.started != nil {
		close(w.started)
	}
}

// result returns the answer as the client sees it.
func (w *response) result(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil && w.buf.Len() == 0 && !w.stream {
		return nil, w.broken
	}
	answer := &http.Response{
		Status:     statusLine(w.code),
		StatusCode: w.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Request: r, ContentLength: -1,
		Body: &body{w: w, request: r},
	}
	switch {
	case w.source != nil:
		answer.ContentLength = w.size
	case w.done && w.broken == nil:
		answer.ContentLength = int64(w.buf.Len())
	}
	return answer, nil
}

func statusLine(code int) string {
	if code == http.StatusOK {
		return "200 OK"
	}
	return strconv.Itoa(code) + " " + http.StatusText(code)
}

// abandon is called when nobody will read the answer.
func (w *response) abandon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.wakeLocked()
}

// waitLocked releases the lock and waits until the response changes or giveUp is closed. It reports whether giveUp
// ended the wait.
func (w *response) waitLocked(giveUp <-chan struct{}) (gaveUp bool) {
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	changed := w.changed
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-changed:
		return false
	case <-giveUp:
		return true
	}
}

func (w *response) wakeLocked() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// body is the client's end.
type body struct {
	w       *response
	request *http.Request // the client's, whose context may end
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	w := b.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.closed:
			return 0, errors.New("localapi: read on closed response body")
		case w.source != nil:
			return w.source.Read(p)
		case w.buf.Len() > 0:
			n, err := w.buf.Read(p)
			w.wakeLocked()
			return n, err
		case w.broken != nil:
			return 0, io.ErrUnexpectedEOF
		case w.done:
			return 0, io.EOF
		}
		if ctx := b.request.Context(); w.waitLocked(ctx.Done()) {
			return 0, ctx.Err()
		}
	}
}

// Close implements [io.Closer]. It ends the request.
func (b *body) Close() error {
	b.w.abandon()
	b.w.cancel()
	return nil
}
