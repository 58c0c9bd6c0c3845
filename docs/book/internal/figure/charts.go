package figure

import "fmt"

// A Lane is a row of a time chart: what one worker did, for example.
type Lane struct {
	Name  string
	Spans []Span
	Marks []Mark
}

// A Span is a time in which something went on. Times are in units of the chart's axis.
type Span struct {
	From, To float64
	Label    string
	Class    Class
}

// A Mark is something that happened at one time.
type Mark struct {
	At    float64
	Label string
	Class Class
}

// A Panel is a group of lanes under a heading, with a remark at the end of the heading's line.
type Panel struct {
	Heading, Remark string
	RemarkClass     Class
	Lanes           []Lane
}

// A TimeChart draws panels one below the other over one axis of time.
type TimeChart struct {
	Title, Desc string
	// Until is where the axis ends, Step the distance of its ticks, Unit what follows the numbers.
	Until, Step float64
	Unit        string
	Panels      []Panel
}

const (
	margin     = 20.0
	nameWidth  = 84.0
	laneHeight = 30.0
	headHeight = 30.0
	panelGap   = 14.0
)

// Draw returns the chart as a figure.
func (c TimeChart) Draw() *Figure {
	height := margin + 24
	for _, p := range c.Panels {
		height += headHeight + laneHeight*float64(len(p.Lanes)) + panelGap
	}
	f := New(c.Title, c.Desc, Width, height)
	left, width := margin+nameWidth, Width-2*margin-nameWidth
	x := func(at float64) float64 { return left + at/c.Until*width }

	y := margin
	for _, p := range c.Panels {
		f.Text(margin, y+13, p.Heading, "name", Plain)
		f.End(Width-margin, y+13, p.Remark, "small", p.RemarkClass)
		y += headHeight
		bottom := y + laneHeight*float64(len(p.Lanes))
		for at := 0.0; at <= c.Until; at += c.Step {
			f.Line(Point{x(at), y - 6}, Point{x(at), bottom}, Muted)
		}
		for _, lane := range p.Lanes {
			f.lane(lane, y, x)
			y += laneHeight
		}
		y += panelGap
	}
	for at := 0.0; at <= c.Until; at += c.Step {
		f.Middle(x(at), y+8, fmt.Sprintf("%g%s", at, c.Unit), "small", Muted)
	}
	return f
}

func (f *Figure) lane(lane Lane, y float64, x func(float64) float64) {
	f.Text(margin, y+18, lane.Name, "small", Muted)
	for _, s := range lane.Spans {
		from, to := x(s.From), x(s.To)
		f.Rect(from+1, y+2, to-from-2, laneHeight-8, s.Class)
		f.Middle((from+to)/2, y+17, s.Label, "small", s.Class)
	}
	for _, m := range lane.Marks {
		f.Line(Point{x(m.At), y + 2}, Point{x(m.At), y + laneHeight - 6}, m.Class)
		f.Text(x(m.At)+5, y+17, m.Label, "small", m.Class)
	}
}

// A Step is a message of a sequence chart. Where From and To are the same, the actor says it to itself.
type Step struct {
	From, To int // indexes of the actors
	Label    string
	Class    Class
}

// A Sequence draws actors side by side and what they send each other from top to bottom.
type Sequence struct {
	Title, Desc string
	Actors      []string
	Steps       []Step
}

// Draw returns the chart as a figure.
func (s Sequence) Draw() *Figure {
	const boxHeight, stepHeight = 36.0, 34.0
	height := margin*2 + boxHeight + 16 + stepHeight*float64(len(s.Steps))
	f := New(s.Title, s.Desc, Width, height)
	pitch := (Width - 2*margin) / float64(len(s.Actors))
	x := func(actor int) float64 { return margin + pitch*(float64(actor)+0.5) }
	for i, actor := range s.Actors {
		f.Line(Point{x(i), margin + boxHeight}, Point{x(i), height - margin}, Muted)
		f.Box(x(i)-pitch/2+8, margin, pitch-16, boxHeight, Plain, actor)
	}
	y := margin + boxHeight + 36
	for _, step := range s.Steps {
		from, to := x(step.From), x(step.To)
		switch {
		case step.From == step.To:
			w := TextWidth(step.Label) + 20
			left := min(max(from-w/2, 8), Width-8-w)
			f.Rect(left, y-19, w, 24, step.Class)
			f.Middle(left+w/2, y-3, step.Label, "small", step.Class)
		default:
			gap := 4.0
			if to < from {
				gap = -gap
			}
			f.Arrow(step.Class, Point{from + gap, y}, Point{to - gap, y})
			f.Middle((from+to)/2, y-7, step.Label, "small", step.Class)
		}
		y += stepHeight
	}
	return f
}

// A Cell is a field of a table.
type Cell struct {
	Text  string
	Class Class // Plain if empty
}

// A Table draws rows of cells below a heading: the contents of a stage step by step, for example. The first column is
// as wide as First, the others share what is left.
type Table struct {
	Title, Desc string
	First       float64
	Head        []string
	Rows        [][]Cell
}

// Draw returns the table as a figure.
func (t Table) Draw() *Figure {
	const rowHeight = 32.0
	f := New(t.Title, t.Desc, Width, 2*margin+24+rowHeight*float64(len(t.Rows)))
	column := (Width - 2*margin - t.First) / float64(len(t.Head)-1)
	left := func(i int) float64 {
		if i == 0 {
			return margin
		}
		return margin + t.First + column*float64(i-1)
	}
	for i, head := range t.Head {
		f.Text(left(i)+8, margin+12, head, "small", Muted)
	}
	for r, row := range t.Rows {
		y := margin + 24 + rowHeight*float64(r)
		for i, cell := range row {
			class := cell.Class
			if class == "" {
				class = Plain
			}
			width := column
			if i == 0 {
				width = t.First
			}
			if i > 0 && cell.Text != "" {
				f.Rect(left(i)+2, y+2, width-4, rowHeight-4, class)
			}
			f.Text(left(i)+8, y+20, cell.Text, "code", class)
		}
	}
	return f
}
