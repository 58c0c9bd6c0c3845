package simtest

import (
	_ "embed"
	"html/template"
	"os"
	"slices"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template shows: a run as a table, with a column for each actor.
type page struct {
	Test    string
	Finding string
	Actors  []string
	Rows    []pageRow
}

// pageRow is one operation.
type pageRow struct {
	At     string
	Column int // of the actor; 0 for what nobody does
	Kind   string
	Text   string
	Result string
}

// Before and After are how many empty cells a row has on each side.
func (r pageRow) Before() []struct{} { return make([]struct{}, max(r.Column-1, 0)) }

// After is the counterpart of Before.
func (p page) After(r pageRow) []struct{} { return make([]struct{}, len(p.Actors)-r.Column) }

// draw writes the page of a plan's run to the file that -sim.html names, if it names one.
func (c *checker) draw(plan *runPlan) {
	c.t.Helper()
	if *htmlFlag == "" {
		return
	}
	r := c.try(plan, limits{trace: true})
	p := page{Test: c.t.Name()}
	if len(r.findings) > 0 {
		p.Finding = r.findings[0].Text
	}
	for _, m := range r.story {
		if m.actor != "" && !slices.Contains(p.Actors, m.actor) {
			p.Actors = append(p.Actors, m.actor)
		}
	}
	for _, m := range r.story {
		row := pageRow{
			At: m.at.Round(time.Millisecond).String(), Column: slices.Index(p.Actors, m.actor) + 1,
			Text: m.text, Result: m.result,
		}
		switch {
		case m.fault != nil:
			row.Kind = "fault"
		case m.write != 0:
			row.Kind = "write"
		case m.minor:
			row.Kind = "minor"
		}
		p.Rows = append(p.Rows, row)
	}
	f, err := os.Create(*htmlFlag)
	if err == nil {
		err = pageTemplate.Execute(f, p)
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		c.t.Errorf("-sim.html: %v", err)
		return
	}
	c.t.Logf("simtest: the run is drawn in %s", *htmlFlag)
}
