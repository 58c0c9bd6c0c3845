package live

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/flyball-dev/flyball/internal/pipeview"
)

// TestTopOnce prints the table of a manager whose only ConfigMap has been written.
func TestTopOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := started(t, settings)
		var out strings.Builder
		if err := (&Top{Client: c, Interval: time.Second, Once: true, Out: &out}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		onPage(t, "flyball top --once", out.String())
	})
}

func TestTopValidates(t *testing.T) {
	err := (&Top{Interval: time.Millisecond}).Validate()
	if want := "--interval 1ms: it must be at least 100ms"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// busy is a manager at two moments, a second apart.
func busy() (before, now pipeview.Pipeline) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	before = pipeview.Pipeline{
		Time: at,
		Resources: []pipeview.Resource{
			{Name: "pods", Objects: 99000, Events: 1000, Bytes: 5},
			{Name: "services", Objects: 3, Events: 7},
		},
		Controllers: []pipeview.Controller{{Name: "endpoints", Workers: 5, Adds: 10, Reconciles: 8}},
	}
	now = pipeview.Pipeline{
		Time: at.Add(time.Second),
		Resources: []pipeview.Resource{
			{Name: "pods", Objects: 100000, Events: 11000, Bytes: 5, Handlers: []pipeview.Handler{
				{Name: "endpoints", Delivered: 10000, Pending: 1000, Running: 7 * time.Second},
			}, Problems: []string{"handler endpoints has been busy for 7s"}},
			{Name: "services", Objects: 3, Events: 2}, // of a process that has started anew
		},
		Controllers: []pipeview.Controller{{
			Name: "endpoints", Workers: 5, Adds: 25, Reconciles: 8, InFlight: 1, Delayed: 2, Failing: 1, Queued: 12,
			Processing: []pipeview.Key{{Key: "shop/web", For: 90 * time.Second, Causes: []string{"pods shop/a"}}},
			Waiting:    []pipeview.Key{{Key: "shop/db", In: time.Hour, Attempt: 3, Why: "back-off\x1b[2J\nof 1h"}},
			Failures:   []pipeview.Key{{Key: "shop/db", Attempt: 3, Why: "forbidden"}},
		}},
	}
	return before, now
}

func TestTopTables(t *testing.T) {
	before, now := busy()
	var out strings.Builder
	if err := writeTop(&out, sample{before, now}); err != nil {
		t.Fatal(err)
	}
	want := `! pods: handler endpoints has been busy for 7s
! endpoints: shop/db fails: forbidden

RESOURCE  OBJECTS  EVENTS/S  BYTES/S  LISTS  DELTAS  HANDLERS  PENDING  VERSION
pods !    100k     10k       0        0      0       1         1000     
services  3        -         0        0      0       0         0        

CONTROLLER   WORKERS  ADDS/S  RECONCILES/S  ERRORS/S  READY  RUNNING  DELAYED  FAILING
endpoints !  5        15      0             0         12     1        2        1
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// seen returns what a screen shows, without colours.
func seen(s *screen) string {
	return regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(s.View().Content, "")
}

// press sends keys to a screen, and reports whether the last one ended it.
func press(s *screen, keys ...tea.Key) (quit bool) {
	for _, k := range keys {
		_, next := s.Update(tea.KeyPressMsg(k))
		if next != nil {
			_, quit = next().(tea.QuitMsg)
		}
	}
	return quit
}

func TestScreen(t *testing.T) {
	before, now := busy()
	s := newScreen("127.0.0.1:6060", time.Second, nil)
	s.take(reply{pipeline: before})
	s.take(reply{pipeline: now})
	s.Update(tea.WindowSizeMsg{Width: 120, Height: 30})
	shows := func(what string, want ...string) {
		t.Helper()
		text := seen(s)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %q in\n%s", what, w, text)
			}
		}
		for _, line := range strings.Split(text, "\n") {
			if n := len([]rune(line)); n > s.width {
				t.Errorf("%s: a line of %d columns on a screen of %d: %q", what, n, s.width, line)
			}
		}
		if n := strings.Count(text, "\n") + 1; n > s.height {
			t.Errorf("%s: %d lines on a screen of %d", what, n, s.height)
		}
	}
	shows("all", "127.0.0.1:6060", "15:04:06", "pods !", "services", "endpoints !", "10k",
		"! endpoints: shop/db fails: forbidden")

	press(s, tea.Key{Code: tea.KeyEnter})
	shows("handlers of pods", "HANDLER", "10000", "7s", "esc back")
	press(s, tea.Key{Code: tea.KeyEscape}, tea.Key{Code: tea.KeyTab}, tea.Key{Code: tea.KeyEnter})
	shows("keys of endpoints", "running", "shop/web", "1m30s", "pods shop/a", "in 1h0m0s", "back-off\uFFFD[2J of 1h")
	press(s, tea.Key{Code: tea.KeyEscape}, tea.Key{Code: tea.KeyTab}, tea.Key{Code: tea.KeyDown})
	if row := s.upper.SelectedRow(); row[0] != "services" {
		t.Errorf("the arrow has chosen %q", row)
	}

	// The numbers stay when the manager does not answer.
	s.take(reply{err: errors.New("nothing listens")})
	shows("no answer", "no answer, these are the last numbers: nothing listens", "100k")
	s.take(reply{pipeline: now})
	if strings.Contains(seen(s), "no answer") {
		t.Error("the manager has answered again, and the screen does not say so")
	}

	for _, size := range []tea.WindowSizeMsg{
		{Width: 40, Height: 12}, {Width: 80, Height: 14}, {Width: 300, Height: 100},
	} {
		s.Update(size)
		shows("small or large", "flyball top", "RESOURCE", "CONTROLLER")
	}
	s.Update(tea.WindowSizeMsg{Width: 120, Height: 30})
	now.Resources[0].Name = "pods (unstructured, shop, fields " + strings.Repeat("metadata.name=web,", 10) + ")"
	s.take(reply{pipeline: now})
	shows("a long name", "pods (unstructured, shop", "VERSION", "1000")
	if press(s, tea.Key{Code: tea.KeySpace}); !s.paused {
		t.Error("the space bar did not pause")
	}
	if !press(s, tea.Key{Code: 'q', Text: "q"}) {
		t.Error("q did not end it")
	}
}

// TestTopLive runs the program itself until the user ends it.
func TestTopLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			if asked > 1 {
				http.Error(w, "gone", http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"time":"2026-01-02T15:04:05Z","resources":[{"name":"pods","objects":5}]}`)
		})
		keys, keyboard := io.Pipe()
		var out strings.Builder
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() {
			ended <- (&Top{
				Client: clientOf(t, h), Interval: time.Second, In: keys, Out: &out,
				options: []tea.ProgramOption{tea.WithWindowSize(80, 24)},
			}).Run(ctx)
		}()
		time.Sleep(2500 * time.Millisecond)
		if _, err := io.WriteString(keyboard, "q"); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		keyboard.Close()
		time.Sleep(time.Second) // The library's timer is not stopped with the program.
		if asked != 3 || !strings.Contains(out.String(), "pods") ||
			!strings.Contains(out.String(), "no answer") {
			t.Errorf("asked %d times; shown %q", asked, &out)
		}
	})
}

// TestTopIsHarmless: names that a manager sends cannot give orders to the terminal, nor turn the text around. What has
// such a name can still be opened.
func TestTopIsHarmless(t *testing.T) {
	const evil = "x\x1b[2J\u202egnp"
	now := pipeview.Pipeline{
		Ready:       evil,
		Resources:   []pipeview.Resource{{Name: evil, Version: evil, Problems: []string{evil}}},
		Controllers: []pipeview.Controller{{Name: evil, Problem: evil, Ready: []pipeview.Key{{Key: evil, Why: evil}}}},
	}
	now.Resources[0].Handlers = append(now.Resources[0].Handlers, pipeview.Handler{Name: evil})
	s := sample{now: now}
	var out strings.Builder
	if err := writeTop(&out, s); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(s.resources().rows[0][0], " !")
	handlers, keys := s.handlers(name).rows, s.keys(name).rows
	if len(handlers) != 1 || len(keys) != 1 {
		t.Fatalf("%d handlers and %d keys, want 1 and 1", len(handlers), len(keys))
	}
	text := out.String() + strings.Join(handlers[0], "") + strings.Join(keys[0], "")
	if strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%q", text)
	}
}
