package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/flyball-dev/flyball/internal/pipeview"
	"github.com/flyball-dev/flyball/internal/printable"
)

// Top shows what a manager does, again and again.
type Top struct {
	Client *Client
	// Interval is the time between two samples. It must be at least leastInterval.
	Interval time.Duration
	// Once prints two samples' difference as text and ends.
	Once bool
	In   io.Reader
	Out  io.Writer

	options []tea.ProgramOption // of tests
}

// leastInterval is the shortest time between two samples.
const leastInterval = 100 * time.Millisecond

// keysShown is how many keys of each kind are asked for.
const keysShown = 100

// Validate returns an error if a field is invalid.
func (t *Top) Validate() error {
	if t.Interval < leastInterval {
		return fmt.Errorf("--interval %s: it must be at least %s", t.Interval, leastInterval)
	}
	return nil
}

// Run shows the table until the user ends it or ctx is done; with Once, until it is printed.
//
// Errors: the manager did not answer the first time. If it stops answering later, the table says so.
func (t *Top) Run(ctx context.Context) error {
	if err := t.Validate(); err != nil {
		return err
	}
	first, err := t.read(ctx)
	if err != nil {
		return err
	}
	if t.Once {
		select {
		case <-time.After(t.Interval):
		case <-ctx.Done():
			return ctx.Err()
		}
		second, err := t.read(ctx)
		if err != nil {
			return err
		}
		return writeTop(t.Out, sample{before: first, now: second})
	}
	s := newScreen(t.Client.base.Host, t.Interval, func() (pipeview.Pipeline, error) { return t.read(ctx) })
	s.take(reply{pipeline: first})
	p := tea.NewProgram(s, append(t.options,
		tea.WithContext(ctx), tea.WithInput(t.In), tea.WithOutput(t.Out), tea.WithoutSignalHandler())...)
	if _, err := p.Run(); err != nil && !errors.Is(err, tea.ErrProgramKilled) {
		return err
	}
	return nil // The user has ended it, also if by a signal.
}

func (t *Top) read(ctx context.Context) (p pipeview.Pipeline, err error) {
	err = t.Client.get(ctx, "pipeline", url.Values{"limit": {strconv.Itoa(keysShown)}}, &p)
	return p, err
}

// sample is the state of a manager and the one before it. The counters of both give the rates.
type sample struct{ before, now pipeview.Pipeline }

// a table has the rows that are shown; each row has as many cells as there are columns.
type table struct {
	columns []string
	rows    [][]string
}

var (
	resourceColumns = []string{
		"RESOURCE", "OBJECTS", "EVENTS/S", "BYTES/S", "LISTS", "DELTAS", "HANDLERS", "PENDING", "VERSION",
	}
	controllerColumns = []string{
		"CONTROLLER", "WORKERS", "ADDS/S", "RECONCILES/S", "ERRORS/S", "READY", "RUNNING", "DELAYED", "FAILING",
	}
	handlerColumns = []string{"HANDLER", "DELIVERED", "PENDING", "BUSY FOR"}
	keyColumns     = []string{"STATE", "KEY", "TIME", "ATTEMPT", "WHY"}
)

// rate returns how much a counter has grown in a second. A counter that is smaller than before is one of a process that
// has started anew; its rate is not known.
func rate[N int64 | uint64](before, now N, seconds float64) string {
	switch growth := float64(now) - float64(before); {
	case now < before || seconds <= 0:
		return "-"
	case growth/seconds < 100:
		return strings.TrimSuffix(strconv.FormatFloat(growth/seconds, 'f', 1, 64), ".0")
	default:
		return short(growth / seconds)
	}
}

// short writes a number with at most four digits.
func short(n float64) string {
	unit := 0
	for n >= 10000 && unit < 4 {
		n /= 1000
		unit++
	}
	return strconv.FormatFloat(n, 'f', 0, 64) + []string{"", "k", "M", "G", "T"}[unit]
}

func (s sample) seconds() float64 { return s.now.Time.Sub(s.before.Time).Seconds() }

func (s sample) resources() table {
	t := table{columns: resourceColumns}
	earlier := map[string]pipeview.Resource{}
	for _, r := range s.before.Resources {
		earlier[r.Name] = r
	}
	for _, r := range s.now.Resources {
		pending := int64(0)
		for _, h := range r.Handlers {
			pending += h.Pending
		}
		b := earlier[r.Name]
		t.rows = append(t.rows, []string{
			mark(r.Name, len(r.Problems) > 0), short(float64(r.Objects)), rate(b.Events, r.Events, s.seconds()),
			rate(b.Bytes, r.Bytes, s.seconds()), short(float64(r.Lists)), short(float64(r.Queued)),
			strconv.Itoa(len(r.Handlers)), short(float64(pending)), printable.Line(r.Version),
		})
	}
	return t
}

func (s sample) controllers() table {
	t := table{columns: controllerColumns}
	earlier := map[string]pipeview.Controller{}
	for _, c := range s.before.Controllers {
		earlier[c.Name] = c
	}
	for _, c := range s.now.Controllers {
		b := earlier[c.Name]
		t.rows = append(t.rows, []string{
			mark(c.Name, c.Problem != "" || c.Failing > 0), strconv.Itoa(c.Workers), rate(b.Adds, c.Adds, s.seconds()),
			rate(b.Reconciles, c.Reconciles, s.seconds()), rate(b.Errors, c.Errors, s.seconds()),
			short(float64(c.Queued)), strconv.Itoa(c.InFlight), short(float64(c.Delayed)), short(float64(c.Failing)),
		})
	}
	return t
}

// mark marks the name of something that is unwell.
func mark(name string, unwell bool) string {
	name = printable.Line(name)
	if unwell {
		return name + " !"
	}
	return name
}

// handlers returns the handlers of a resource.
func (s sample) handlers(resource string) table {
	t := table{columns: handlerColumns}
	for _, r := range s.now.Resources {
		if printable.Line(r.Name) != resource {
			continue
		}
		for _, h := range r.Handlers {
			t.rows = append(t.rows, []string{
				printable.Line(h.Name), strconv.FormatInt(h.Delivered, 10), strconv.FormatInt(h.Pending, 10),
				length(h.Running),
			})
		}
	}
	return t
}

// keys returns the keys of a controller: those that are worked on, those that are next, and those that wait.
func (s sample) keys(controller string) table {
	t := table{columns: keyColumns}
	for _, c := range s.now.Controllers {
		if printable.Line(c.Name) != controller {
			continue
		}
		for _, state := range []struct {
			name string
			keys []pipeview.Key
		}{{"running", c.Processing}, {"ready", c.Ready}, {"delayed", c.Waiting}, {"failing", c.Failures}} {
			for _, k := range state.keys {
				attempt, at := "", length(k.For)
				if k.Attempt > 0 {
					attempt = strconv.Itoa(k.Attempt)
				}
				if k.In != 0 {
					at = "in " + length(k.In)
				}
				t.rows = append(t.rows, []string{
					state.name, printable.Line(k.Key), at, attempt,
					printable.Line(cmp.Or(k.Why, strings.Join(k.Causes, ", "))),
				})
			}
		}
	}
	return t
}

// length writes a duration, and nothing for none.
func length(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// complaints says what is unwell, a line for each thing.
func (s sample) complaints() (lines []string) {
	if s.now.Ready != "" {
		lines = append(lines, "not ready: "+printable.Line(s.now.Ready))
	}
	for _, r := range s.now.Resources {
		for _, p := range r.Problems {
			lines = append(lines, printable.Line(r.Name+": "+p))
		}
	}
	for _, c := range s.now.Controllers {
		if c.Problem != "" {
			lines = append(lines, printable.Line(c.Name+": "+c.Problem))
		}
		if len(c.Failures) > 0 {
			f := c.Failures[0]
			lines = append(lines, printable.Line(fmt.Sprintf("%s: %s fails: %s", c.Name, f.Key, f.Why)))
		}
	}
	return lines
}

// writeTop writes a sample as text.
func writeTop(out io.Writer, s sample) error {
	var b strings.Builder
	for _, line := range s.complaints() {
		fmt.Fprintln(&b, "!", line)
	}
	for _, t := range []table{s.resources(), s.controllers()} {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{t.columns}, t.rows...) {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
