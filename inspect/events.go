package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/internal/printable"
	"github.com/flyball-dev/flyball/internal/trace"
)

const (
	// mostReaders bounds the streams that are open at once.
	mostReaders = 16
	// streamTick is how often a stream looks for new steps. The pipeline is sent at every second tick.
	streamTick = 500 * time.Millisecond
	// whyEvery is how often a stream asks the server about its object.
	whyEvery = 2 * time.Second
	// whyTimeout bounds that.
	whyTimeout = 5 * time.Second
	// slowReader is how long a reader may take to receive one message.
	slowReader = 10 * time.Second
	// streamKeys bounds the keys of each kind and controller in a stream, streamSteps the steps of its object.
	streamKeys, streamSteps = 50, 500
	// mostWatched bounds the keys whose steps a stream keeps from being forgotten.
	mostWatched = 20
)

// events serves a stream of server-sent events until the reader goes: "pipeline", a Pipeline each second; and if an
// object is asked for, "steps", what has changed in its Timeline, and "why", its Why. Nothing waits for a reader: each
// message is made when the one before has been sent.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	var object Ref
	if r.URL.RawQuery != "" {
		var ok bool
		if object, ok = s.object(w, r); !ok {
			return
		}
	}
	select {
	case s.readers <- struct{}{}:
		defer func() { <-s.readers }()
	default:
		http.Error(w, fmt.Sprintf("%d pages are open already: close one", mostReaders), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	st := stream{server: s, w: w, control: http.NewResponseController(w), object: object}
	_ = st.control.SetReadDeadline(time.Time{}) // The server's is for the request. Recorders of tests have none.
	st.run(r.Context())
}

// stream is one reader of events.
type stream struct {
	*server
	w       http.ResponseWriter
	control *http.ResponseController
	err     error // of the last write

	object Ref // may be zero
	// recorded is how many steps of all objects there were when those of the object were last sent.
	recorded uint64
	// sent has a hash of each step as the reader has it.
	sent    map[uint64]uint64
	watched map[trace.Subject]func() // each stops a watch
}

// message sends one event.
func (st *stream) message(event string, data []byte) {
	if st.err != nil {
		return
	}
	_ = st.control.SetWriteDeadline(time.Now().Add(slowReader))
	if _, st.err = fmt.Fprintf(st.w, "event: %s\ndata: %s\n\n", event, data); st.err == nil {
		st.err = st.control.Flush()
	}
}

func (st *stream) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan []string) // The goroutine sends; nobody closes it.
	if st.object.Name != "" {
		st.sent, st.watched = map[uint64]uint64{}, map[trace.Subject]func(){}
		defer func() {
			for _, stop := range st.watched {
				stop()
			}
		}()
		wg.Go(func() { st.ask(ctx, answers) })
	}
	ticks := time.NewTicker(streamTick)
	defer ticks.Stop()
	st.message("pipeline", st.sample())
	st.steps()
	for n := 1; st.err == nil; {
		select {
		case <-ticks.C:
			st.steps()
			if n++; n%2 == 1 {
				st.message("pipeline", st.sample())
			}
		case lines := <-answers:
			st.message("why", encoded(lines))
		case <-ctx.Done():
			return
		}
	}
}

// ask sends why nothing happens to the object, now and then.
func (st *stream) ask(ctx context.Context, answers chan<- []string) {
	for {
		patience, cancel := context.WithTimeout(ctx, whyTimeout)
		lines := st.Why(patience, st.manager, st.object)
		cancel()
		select {
		case answers <- lines:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(whyEvery):
		case <-ctx.Done():
			return
		}
	}
}

// changes is the message "steps": what has changed in a Timeline since the message before.
type changes struct {
	// Steps are those that are new or not as they were; Gone are the numbers of those that are forgotten.
	Steps  []json.RawMessage `json:"steps"`
	Gone   []uint64          `json:"gone,omitempty"`
	Before uint64            `json:"before,omitempty"`
}

var seed = maphash.MakeSeed()

// steps sends what has changed in the object's timeline.
func (st *stream) steps() {
	recorded := st.recorder.Stats().Steps
	if st.object.Name == "" || st.recorded == recorded && len(st.watched) > 0 {
		return
	}
	st.recorded = recorded
	st.watch()
	t := st.Timeline(st.object)
	if extra := len(t.Steps) - streamSteps; extra > 0 {
		t.Steps, t.Before = t.Steps[extra:], t.Before+uint64(extra)
	}
	c := changes{Steps: []json.RawMessage{}, Before: t.Before}
	gone := st.sent
	st.sent = make(map[uint64]uint64, len(t.Steps))
	for n := range t.Steps {
		number, text := t.Steps[n].Number, encoded(&t.Steps[n])
		hash := maphash.Bytes(seed, text)
		if old, ok := gone[number]; !ok || old != hash {
			c.Steps = append(c.Steps, text)
		}
		st.sent[number] = hash
		delete(gone, number)
	}
	c.Gone = slices.Sorted(maps.Keys(gone))
	st.message("steps", encoded(c))
}

// watch keeps the steps of the object, and of the keys that handlers have made of it, from being forgotten.
func (st *stream) watch() {
	subject := st.object.subject()
	subjects := []trace.Subject{subject}
	steps, _ := st.recorder.Steps(subject)
	for n := range slices.Backward(steps) {
		for _, k := range steps[n].Keys {
			subjects = append(subjects,
				trace.Subject{Controller: steps[n].Other.Controller, Namespace: k.Namespace, Name: k.Name})
		}
	}
	for _, s := range subjects {
		if _, ok := st.watched[s]; !ok && len(st.watched) < mostWatched {
			st.watched[s] = st.recorder.Watch(s)
		}
	}
}

// sample returns a Pipeline as JSON that is at most half a second old. All streams share it.
func (s *server) sample() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.sampled) >= streamTick {
		s.latest, s.sampled = encoded(s.view(s.manager, streamKeys)), time.Now()
	}
	return s.latest
}

// encoded returns a value as JSON. It is one line, as a server-sent event needs it.
func encoded(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // The types have no field that JSON cannot hold.
	}
	return text
}

// WriteText writes a timeline as lines of text, for a terminal.
func (t *Timeline) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, t.Object)
	if t.Before > 0 {
		fmt.Fprintf(&b, "(%d older steps are forgotten)\n", t.Before)
	}
	for n := range t.Steps {
		t.Steps[n].write(&b)
	}
	for _, line := range t.Why {
		fmt.Fprintf(&b, "=> %s\n", line)
	}
	_, err := io.WriteString(w, printable.Text(b.String()))
	return err
}

// write writes a step: when, where, and what.
func (e *Entry) write(b *strings.Builder) {
	where := e.Stage
	switch {
	case e.Run != 0:
		where += fmt.Sprintf(" %s-%d", e.Controller, e.Run)
	case e.Controller != "":
		where += " " + e.Controller
	}
	fmt.Fprintf(b, "%s #%-5d %-24s %s", e.Time.Format("15:04:05.000"), e.Number, where, e.Text)
	if e.From != 0 {
		fmt.Fprintf(b, " (of write #%d)", e.From)
	}
	b.WriteByte('\n')
	for _, d := range e.Details {
		fmt.Fprintf(b, "%46s%s\n", "", d)
	}
}
