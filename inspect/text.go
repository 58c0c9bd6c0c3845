package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/flyball-dev/flyball/internal/printable"
)

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
