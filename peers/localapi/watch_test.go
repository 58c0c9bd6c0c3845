package localapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// patience is how long a watch is waited for, and silence how long it must say nothing more after the last event.
const (
	patience = 10 * time.Second
	silence  = 50 * time.Millisecond
)

// watch collects the events of a stream.
type watch struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when the stream has ended, by the goroutine that reads it
	more   chan struct{} // holds a token when events came; sent by that goroutine, capacity 1

	mu     sync.Mutex
	events []any
	err    error
}

// startWatch opens a watch, and returns the answer if the server refuses.
func (s *side) startWatch(ctx context.Context, st *step) (answer, error) {
	if err := s.catchUp(ctx, st); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	resp, err := s.request(ctx, st)
	if err != nil {
		cancel()
		return answer{}, err
	}
	if resp.StatusCode != http.StatusOK {
		defer cancel()
		defer resp.Body.Close()
		return s.read(resp, st)
	}
	w := &watch{cancel: cancel, ended: make(chan struct{}), more: make(chan struct{}, 1)}
	s.watches[st.watch] = w
	go func() {
		defer close(w.ended)
		defer resp.Body.Close()
		w.collect(json.NewDecoder(resp.Body))
	}()
	return answer{code: resp.StatusCode, headers: headersOf(resp)}, nil
}

// catchUp makes sure that the server's watch cache has seen all writes: a watch without a version starts at whatever
// state that cache is in.
func (s *side) catchUp(ctx context.Context, st *step) error {
	list := *st
	list.method, list.headers, list.as = http.MethodGet, nil, ""
	target, _, _ := strings.Cut(st.target, "?")
	list.target = strings.Replace(target, "/watch/", "/", 1) + "?limit=1"
	_, err := s.send(ctx, &list)
	return err
}

func (w *watch) collect(d *json.Decoder) {
	for {
		var event any
		err := d.Decode(&event)
		w.mu.Lock()
		if err != nil {
			w.err = err
			w.mu.Unlock()
			return
		}
		w.events = append(w.events, event)
		w.mu.Unlock()
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}

func (w *watch) state() (n int, last any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n = len(w.events); n > 0 {
		last = w.events[n-1]
	}
	return n, last
}

// wait returns when enough events have come (judged by the number so far and the last one), or not in time.
func (w *watch) wait(enough func(n int, last any) bool) {
	deadline := time.After(patience)
	if *rewrite {
		deadline = time.After(time.Second) // the script may not know the number yet
	}
	for !enough(w.state()) {
		select {
		case <-w.more:
		case <-w.ended:
			return
		case <-deadline:
			return
		}
	}
}

// endWatch waits for the events that a step names, and returns all that came.
func (s *side) endWatch(st *step) (answer, error) {
	w := s.watches[st.watch]
	if w == nil {
		return answer{}, fmt.Errorf("no watch %q", st.watch)
	}
	w.wait(func(n int, last any) bool {
		if st.target != "" { // the name of the last object
			return nameOf(last) == st.target
		}
		return n >= st.code
	})
	closed := true
	wait := silence
	if st.closed {
		wait = patience
	}
	select {
	case <-w.ended:
	case <-time.After(wait):
		closed = false
	}
	w.cancel()
	<-w.ended
	if closed && !errors.Is(w.err, io.EOF) {
		return answer{}, fmt.Errorf("read the watch: %w", w.err)
	}
	return answer{code: len(w.events), headers: map[string]any{"closed": closed}, body: append([]any{}, w.events...)},
		nil
}

func nameOf(event any) string {
	e, _ := event.(map[string]any)
	o, _ := e["object"].(map[string]any)
	m, _ := o["metadata"].(map[string]any)
	name, _ := m["name"].(string)
	return name
}

// keepEvents drops the bookmarks that come with time: when a server sends those is its own affair.
func (n *names) keepEvents(a *answer) {
	events, _ := a.body.([]any)
	var kept []any
	for _, event := range events {
		e, _ := event.(map[string]any)
		o, _ := e["object"].(map[string]any)
		m, _ := o["metadata"].(map[string]any)
		if _, marked := m["annotations"]; e["type"] == "BOOKMARK" && !marked {
			continue
		}
		kept = append(kept, event)
	}
	a.body, a.code = kept, len(kept)
}
