package reflector

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/connection"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/docblock"
)

var update = flag.Bool("update", false, "write the recovery table into docs/informer-cases.md")

var states = []kind{listing, streaming, verifying, watching}

// meets returns the failures that can occur in a state.
func meets(in kind) []connection.Failure {
	var all []connection.Failure
	for f := range connection.Failures {
		switch f {
		case connection.Past, connection.Unverifiable:
			if in != watching {
				continue
			}
		case connection.Early, connection.Silent, connection.Endless, connection.History:
			if in == listing || in == verifying {
				continue // A silent page counts as a broken connection. An interruption does not end it.
			}
		}
		all = append(all, f)
	}
	return all
}

var conditions = map[kind][]condition{
	listing:   {laterPage, older, stale},
	streaming: {older, wasOpen, stale},
	verifying: {stale},
	watching:  {progress, third, gateway},
}

// TestRecoveryTable: every failure that can occur in a state has a row, under all conditions; every row is the first to
// apply to something; and the page shows the table.
func TestRecoveryTable(t *testing.T) {
	used := map[*recovery]bool{}
	for _, in := range states {
		for _, f := range meets(in) {
			for set := range 1 << len(conditions[in]) {
				are := facts{}
				for i, c := range conditions[in] {
					are[c] = set>>i&1 == 1
				}
				row := lookup(in, f, are)
				if row == nil {
					t.Fatalf("no row for %v in %v, with %v", f, in, are)
				}
				used[row] = true
			}
		}
		for i, row := range recoveries[in] {
			if !used[&recoveries[in][i]] {
				t.Errorf("in %v no failure leads to row %d: %v", in, i, row)
			}
			for _, f := range row.on {
				if !slices.Contains(meets(in), f) {
					t.Errorf("%v has a row for %v, which it cannot meet", in, f)
				}
			}
		}
	}

	const page, block = "../../docs/informer-cases.md", "go test ./informer/reflector -run TestRecoveryTable -update"
	if *update {
		if err := docblock.Write(page, block, figure()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := docblock.Read(page, block); err != nil || got != strings.TrimSpace(figure()) {
		t.Errorf("%s does not show the table (%v): run %s", page, err, block)
	}
}

// figure returns the table in Markdown.
func figure() string {
	type label struct {
		effect effect
		name   string
	}
	text := func(then effect, labels ...label) string {
		var has []string
		for _, l := range labels {
			if then.has(l.effect) {
				has = append(has, l.name)
			}
		}
		return strings.Join(has, ", ")
	}
	var out strings.Builder
	out.WriteString("| in | failure | and if | next | the next list | noted | because |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, in := range states {
		for _, row := range recoveries[in] {
			on := []string{"any other"}
			if row.on != nil {
				on = nil
			}
			for _, f := range row.on {
				on = append(on, f.String())
			}
			next := row.next.String()
			if row.then.has(pause) {
				next = "pause, " + next
			}
			fmt.Fprintf(&out, "| %v | %s | %s | %s | %s | %s | %s |\n", in, strings.Join(on, ", "), row.when, next,
				text(row.then, label{newest, "newest"}, label{unpaged, "unpaged"}, label{rebuild, "rebuild"},
					label{dontStream, "not streamed"}, label{streamAgain, "streamed again"}),
				text(row.then, label{report, "failure"}, label{note, "log"}, label{lost, "loss"}), row.why)
		}
	}
	return out.String()
}

// TestRecovery makes a server fail in every way that is possible in each state, and compares the reflector with the
// table. It reaches every row.
func TestRecovery(t *testing.T) {
	reached := map[*recovery]bool{}
	for _, in := range states {
		for _, f := range meets(in) {
			for _, when := range append([]condition{always}, conditions[in]...) {
				if !occurs(in, f, when) {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					are := facts{when: true, wasOpen: when == wasOpen || in == streaming && f == connection.Early}
					row := lookup(in, f, are)
					reached[row] = true
					if got, want := outcome(t, in, f, are), expected(in, f, are, row); got != want {
						t.Errorf("in %v, %v, %v:\n got %+v\nwant %+v", in, f, when, got, want)
					}
				})
			}
		}
		for i, row := range recoveries[in] {
			if !reached[&recoveries[in][i]] {
				t.Errorf("in %v nothing leads to row %d: %v", in, i, row)
			}
		}
	}
}

// TestPagesAlthoughUnpaged: if a server sends pages although everything was asked for at once, there is a pause.
func TestPagesAlthoughUnpaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lw := &faulty{failure: connection.Expired, are: facts{laterPage: true}}
		r := New[string](lw, deltafifo.New[string](), Options[string]{})
		first := r.step(t.Context(), state{kind: listing})
		if second := r.step(t.Context(), first); first.pause > 0 || second.pause == 0 {
			t.Errorf("first %+v, then %+v", first, second)
		}
	})
}

// TestVerifyWhileStopping: a reflector that is stopped while it verifies does not report that the history went back.
func TestVerifyWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := connection.NewServer(nil)
		ctx, stop := context.WithCancel(t.Context())
		lw := &stopping{faulty: &faulty{are: facts{stale: true}}, stop: stop}
		r := New[string](lw, deltafifo.New[string](), Options[string]{
			Status: connection.NewStatus(connection.StatusOptions{Server: server}),
		})
		r.position = "5"
		s := state{kind: verifying, because: connection.Broken}
		if next := r.step(ctx, s); next != s || server.Current() != 0 {
			t.Errorf("next is %+v, want %+v; the history is number %d, want 0", next, s, server.Current())
		}
	})
}

// stopping stops the reflector before it answers.
type stopping struct {
	*faulty
	stop context.CancelFunc
}

func (l *stopping) List(ctx context.Context, o listwatch.ListOptions,
	yield func(string) error,
) (listwatch.ListResult, error) {
	l.stop()
	return l.faulty.List(ctx, o, yield)
}

// occurs reports whether a server can be made to fail in this way.
func occurs(in kind, f connection.Failure, when condition) bool {
	switch {
	case in == watching && f == connection.Endless:
		return false // Only if the last object of the stream arrives just as it is given up.
	case when == stale:
		return f == connection.Ahead
	case when == gateway:
		return f == connection.ServerError
	}
	return true
}

// result is the effect of a failure.
type result struct {
	next               state
	unstreamed         bool
	failures, identify int
}

// before returns the state before the failure.
func before(in kind, are facts) state {
	s := state{kind: in}
	switch {
	case in == listing && !are[older] && !are[laterPage], in == streaming && !are[older] && !are[stale]:
		s.list = newest
	}
	return s
}

func expected(in kind, f connection.Failure, are facts, row *recovery) result {
	want := result{next: state{kind: row.next, list: before(in, are).list, because: f}, unstreamed: in == listing}
	for _, e := range []effect{newest, unpaged, rebuild} {
		if row.then.has(e) {
			want.next.list |= e
		}
	}
	switch {
	case row.then.has(dontStream):
		want.unstreamed = true
	case row.then.has(streamAgain):
		want.unstreamed = false
	}
	if row.then.has(pause) {
		want.next.pause = time.Second
		if f == connection.Busy {
			want.next.pause = 7 * time.Second
		}
	}
	if row.then.has(report) {
		want.failures = 1
	}
	if row.then.has(lost) {
		want.identify = 1
	}
	return want
}

func outcome(t *testing.T, in kind, f connection.Failure, are facts) (got result) {
	server := connection.NewServer(func(context.Context) (string, error) { got.identify++; return "same", nil })
	server.Verify(t.Context())
	got.identify = 0
	status := connection.NewStatus(connection.StatusOptions{
		Server: server, OnError: func(context.Context, error) { got.failures++ },
	})
	defer status.Follow()()
	lw := &faulty{status: status, failure: f, are: are}
	r := New[string](lw, deltafifo.New[string](), Options[string]{
		Status: status, Cache: emptyCache{}, StreamLists: true, PageSize: 1,
		Backoff: Backoff{Min: time.Second, Rand: func() float64 { return 0 }},
	})
	if f != connection.Endless {
		r.o.Quiet = time.Hour
	}
	r.position, r.listed, r.progress, r.noStreaming = "5", true, are[progress], in == listing
	if are[third] {
		r.serverErrors = maxServerErrors - 1
	}
	got.next = r.step(t.Context(), before(in, are))
	got.unstreamed = r.noStreaming
	server.Verify(t.Context())
	return got
}

// faulty is a server that fails in one way.
type faulty struct {
	status  *connection.Status
	failure connection.Failure
	are     facts
}

func (l *faulty) List(ctx context.Context, o listwatch.ListOptions,
	_ func(string) error,
) (listwatch.ListResult, error) {
	switch {
	case l.are[laterPage] && o.Continue == "":
		return listwatch.ListResult{ResourceVersion: "9", Continue: "more"}, nil
	case l.are[stale]:
		return listwatch.ListResult{ResourceVersion: "3"}, nil
	}
	return listwatch.ListResult{}, l.err(ctx)
}

func (l *faulty) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Watch[string], error) {
	if o.SendInitialEvents && !l.are[wasOpen] && !l.are[stale] {
		return nil, l.err(ctx)
	}
	return l, nil
}

func (l *faulty) Next(ctx context.Context) (listwatch.Event[string], error) {
	switch {
	case l.are[stale]:
		return listwatch.Event[string]{Type: listwatch.Bookmark, ResourceVersion: "3", InitialEventsEnd: true}, nil
	case l.failure == connection.Past:
		return listwatch.Event[string]{Type: listwatch.Removed, ResourceVersion: "3"}, nil
	case l.failure == connection.Unverifiable:
		return listwatch.Event[string]{Type: listwatch.Added, Object: "a", ResourceVersion: "3"}, nil
	case l.failure == connection.Closed:
		time.Sleep(5 * time.Minute)
	}
	return listwatch.Event[string]{}, l.err(ctx)
}

func (l *faulty) Close() error { return nil }

// err returns the error of a request or a stream.
func (l *faulty) err(ctx context.Context) error {
	status := func(code int32) error { return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}} }
	switch l.failure {
	case connection.Closed:
		return io.EOF
	case connection.Early:
		time.Sleep(2 * time.Second)
		return io.EOF
	case connection.History:
		l.status.Interrupt()
		fallthrough
	case connection.Silent, connection.Endless:
		<-ctx.Done()
		return ctx.Err()
	case connection.Expired:
		return status(410)
	case connection.Ahead:
		err := apierrors.NewTimeoutError("too large", 0)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return err
	case connection.ServerError:
		if l.are[gateway] {
			return status(503)
		}
		return status(500)
	case connection.Busy:
		return apierrors.NewTooManyRequests("busy", 7)
	case connection.Refused:
		return status(403)
	case connection.Malformed:
		return &objects.DecodeError{What: "object", Err: errors.New("it is none")}
	default:
		return errors.New("broken")
	}
}

// emptyCache is a cache that holds nothing.
type emptyCache struct{}

func (emptyCache) Held(objects.State) (string, bool) { return "", false }

func (emptyCache) Known(objects.State) bool { return false }
