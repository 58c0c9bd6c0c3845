package events

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/events"
)

// Both recorders implement client-go's interfaces.
var (
	_ clientgo.EventRecorder          = EventRecorder(nil)
	_ clientgo.AnnotatedEventRecorder = EventRecorder(nil)
)

func TestEventRecorderTellsActionAndRelated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		begin := time.Now()
		note := map[string]string{"example.com/trace": "4711"}
		b.EventRecorder("site-controller").AnnotatedEventf(pod("web"), pod("db"), note, "Warning", "Full", "Evict",
			"%d %%", 100)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		got := server.list()
		if len(got) != 1 {
			t.Fatalf("%d events, want 1", len(got))
		}
		e := got[0]
		if e.InvolvedObject.Name != "web" || e.Related == nil || e.Related.Name != "db" || e.Action != "Evict" ||
			e.Reason != "Full" || e.Type != corev1.EventTypeWarning || e.Message != "100 %" ||
			e.Annotations["example.com/trace"] != "4711" || !e.EventTime.Time.Equal(begin) || e.Series != nil ||
			e.ReportingController != "site-controller" || !strings.HasPrefix(e.ReportingInstance, "site-controller-") {
			t.Errorf("got %+v", e)
		}
		if e.Count != 0 || !e.FirstTimestamp.IsZero() || !e.LastTimestamp.IsZero() || e.Source.Component != "" {
			t.Errorf("fields of the older form are set: %+v", e)
		}
		checkBooks(t, b.Stats())
	})
}

func TestRepetitionsAreASeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		r := b.EventRecorder("c")
		begin := time.Now()
		say := func(related, action string) {
			r.Eventf(pod("web"), pod(related), "Normal", "Moved", action, "moved")
			synctest.Wait()
		}
		for range 3 {
			say("a", "Move")
			time.Sleep(time.Minute)
		}
		say("b", "Move") // another second object, another action: events of their own
		say("a", "Copy")
		server.mu.Lock()
		delete(server.events, server.order[0]) // the server forgets events
		server.mu.Unlock()
		time.Sleep(time.Minute)
		say("a", "Move")
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		got := server.list()
		want := `{"series":{"count":2,"lastObservedTime":"2000-01-01T00:01:00.000000Z"},"message":"moved"}`
		if server.patches[0] != want {
			t.Errorf("patch %s, want %s", server.patches[0], want)
		}
		if len(got) != 4 { // the forgotten one is listed twice: it has its old name again
			t.Fatalf("%d events, want 4: %+v", len(got), got)
		}
		again := got[3]
		if again.Series == nil || again.Series.Count != 4 || !again.EventTime.Time.Equal(begin) ||
			!again.Series.LastObservedTime.Time.Equal(begin.Add(4*time.Minute)) {
			t.Errorf("created again as %+v, want a series of 4 since %v", again, begin)
		}
	})
}

func TestManyNotesAreCombined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer()
		b := newBroadcaster(server.Events, Options{})
		stop := run(t, b)
		long := strings.Repeat("ä", 600)
		for i := range 11 {
			b.EventRecorder("c").Eventf(pod("web"), nil, "Normal", "R", "A", "%d %s", i, long)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		got := server.list()
		if len(got) != 10 {
			t.Fatalf("%d events, want 9 single ones and 1 combined", len(got))
		}
		e := got[9]
		if e.Action != "A" || e.ReportingInstance == "" || e.EventTime.IsZero() || e.Series == nil ||
			e.Series.Count != 2 || !strings.HasPrefix(e.Message, aggregatePrefix+"10 ää") {
			t.Errorf("combined: %+v", e)
		}
		for _, e := range got {
			if n := len(e.Message); n > maxNote || n < maxNote-1 || !strings.HasSuffix(e.Message, "ä...") {
				t.Errorf("message of %d bytes ends with %q", n, e.Message[n-8:])
			}
		}
	})
}

func TestEventThatTheServerWouldRefuse(t *testing.T) {
	b := newBroadcaster(newFakeServer().Events, Options{})
	for name, call := range map[string]func(r EventRecorder){
		"no action": func(r EventRecorder) { r.Eventf(pod("web"), nil, "Normal", "R", "", "note") },
		"no reason": func(r EventRecorder) { r.Eventf(pod("web"), nil, "Normal", "", "A", "note") },
		"long action": func(r EventRecorder) {
			r.Eventf(pod("web"), nil, "Normal", "R", strings.Repeat("A", 129), "note")
		},
		"type":       func(r EventRecorder) { r.Eventf(pod("web"), nil, "Bad", "R", "A", "note") },
		"nil object": func(r EventRecorder) { r.Eventf((*corev1.Pod)(nil), nil, "Normal", "R", "A", "note") },
		"unknown related": func(r EventRecorder) {
			r.Eventf(pod("web"), &unknown{}, "Normal", "R", "A", "note")
		},
		"name": func(EventRecorder) {
			b.EventRecorder("not a name").Eventf(pod("web"), nil, "Normal", "R", "A", "note")
		},
	} {
		before := b.Stats()
		call(b.EventRecorder("c"))
		if s := b.Stats(); s.Invalid != before.Invalid+1 || s.Queued != 0 {
			t.Errorf("%s: %+v, want one more that is invalid", name, s)
		}
	}
	// A nil pointer as the second object means that there is none.
	b.EventRecorder("c").Eventf(pod("web"), (*corev1.Pod)(nil), "Normal", "R", "A", "note")
	if s := b.Stats(); s.Queued != 1 {
		t.Errorf("%+v, want one that is queued", s)
	}
}

// unknown is a type that is not in the scheme.
type unknown struct{ corev1.Pod }
