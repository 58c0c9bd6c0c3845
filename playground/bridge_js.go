package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall/js"
)

// bridge takes requests from the messages that the page sends to this worker, and answers by messages:
//
//	{id, method, path, headers, body}  a request; its headers are an object, and its body a text
//	{id, cancel: true}                 nobody waits for its answer any more
//
//	{ready: true}                      requests are answered from now on
//	{failed: text}                     the program ends for this reason
//	{id, status, headers}              the head of an answer
//	{id, chunk}                        bytes of its body
//	{id, end: true}                    its end
type bridge struct {
	handler http.Handler

	mu      sync.Mutex
	running map[int]context.CancelFunc
}

func main() {
	scenario := ""
	if len(os.Args) > 1 {
		scenario = os.Args[1]
	}
	err := run(context.Background(), scenario, serve)
	post(map[string]any{"failed": fmt.Sprint(err)})
}

// serve answers the messages by h, for as long as the program runs.
func serve(h http.Handler) {
	b := &bridge{handler: h, running: map[int]context.CancelFunc{}}
	js.Global().Call("addEventListener", "message", js.FuncOf(func(_ js.Value, args []js.Value) any {
		b.message(args[0].Get("data"))
		return nil
	}))
	post(map[string]any{"ready": true})
}

func post(message map[string]any) { js.Global().Call("postMessage", message) }

// message starts or cancels a request. It must not block: it runs in the event loop of the browser.
func (b *bridge) message(m js.Value) {
	id := m.Get("id").Int()
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.Get("cancel").Truthy() {
		if cancel := b.running[id]; cancel != nil {
			cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &answer{id: id, header: http.Header{}}
	r, err := http.NewRequestWithContext(ctx, m.Get("method").String(), "http://localhost"+m.Get("path").String(),
		strings.NewReader(m.Get("body").String()))
	if err != nil {
		cancel()
		http.Error(a, err.Error(), http.StatusBadRequest)
		a.end()
		return
	}
	headers := m.Get("headers")
	names := js.Global().Get("Object").Call("keys", headers)
	for i := range names.Length() {
		r.Header.Set(names.Index(i).String(), headers.Get(names.Index(i).String()).String())
	}
	b.running[id] = cancel
	go func() {
		defer func() {
			cancel()
			b.mu.Lock()
			delete(b.running, id)
			b.mu.Unlock()
			a.end()
		}()
		b.handler.ServeHTTP(a, r)
	}()
}

// answer is an [http.ResponseWriter] that sends messages.
type answer struct {
	id     int
	header http.Header
	sent   bool // the head
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	if a.sent {
		return
	}
	a.sent = true
	headers := map[string]any{}
	for name := range a.header {
		headers[name] = a.header.Get(name)
	}
	post(map[string]any{"id": a.id, "status": code, "headers": headers})
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	bytes := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(bytes, b)
	post(map[string]any{"id": a.id, "chunk": bytes})
	return len(b), nil
}

// Flush implements [http.Flusher]. Nothing waits in the answer but its head.
func (a *answer) Flush() { a.WriteHeader(http.StatusOK) }

func (a *answer) end() {
	a.Flush()
	post(map[string]any{"id": a.id, "end": true})
}
