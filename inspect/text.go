package inspect

import (
	"fmt"
	"io"
	"strings"
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
	_, err := io.WriteString(w, clean(b.String()))
	return err
}

// write writes a step: when, where, and what.
func (e *Entry) write(b *strings.Builder) {
	where := string(e.Stage)
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

// clean takes control characters away, which names and values of objects may have and a terminal would obey.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}
