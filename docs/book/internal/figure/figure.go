package figure

import (
	"fmt"
	"html"
	"strings"
)

// Width is the width that a figure has if nothing asks for another. A page shows it at its full size.
const Width = 720

// A Class is a style of a box, a line or a text.
type Class string

// The classes. A, B and C tell things of one kind apart, such as three keys.
const (
	Plain Class = "plain"
	Muted Class = "muted"
	Lit   Class = "lit" // what the reader is to look at
	Bad   Class = "bad"
	Good  Class = "good"
	A     Class = "a"
	B     Class = "b"
	C     Class = "c"
)

// A Point is a place in a figure, from its top left corner.
type Point struct{ X, Y float64 }

// A Figure is a drawing. [New] makes one; its methods add to it, and what comes later lies on top.
type Figure struct {
	title, desc   string
	width, height float64
	body          strings.Builder
}

// New returns an empty figure. Title and description are for readers who do not see it: the description says in one or
// two sentences what the figure shows.
func New(title, desc string, width, height float64) *Figure {
	return &Figure{title: title, desc: desc, width: width, height: height}
}

// Box draws a box with lines of text in its middle. The first line is bold, the others are smaller.
func (f *Figure) Box(x, y, w, h float64, class Class, lines ...string) {
	f.Rect(x, y, w, h, class)
	const first, next = 17.0, 16.0
	top := y + h/2 - (first+next*float64(len(lines)-1))/2 + 13
	for i, line := range lines {
		switch {
		case i == 0 && len(line) > 16:
			f.text(x+w/2, top, "name long "+string(class)+"-text", "middle", line)
		case i == 0:
			f.text(x+w/2, top, "name "+string(class)+"-text", "middle", line)
		default:
			f.text(x+w/2, top+next*float64(i), "small "+string(class)+"-text", "middle", line)
		}
	}
}

// Rect draws an empty box.
func (f *Figure) Rect(x, y, w, h float64, class Class) {
	fmt.Fprintf(&f.body, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"%s\" class=\"box %s\"/>\n",
		number(x), number(y), number(w), number(h), number(min(7, h/3)), class)
}

// Area fills the polygon with the given corners.
func (f *Figure) Area(class Class, corners ...Point) {
	var list strings.Builder
	for _, p := range corners {
		fmt.Fprintf(&list, "%s,%s ", number(p.X), number(p.Y))
	}
	fmt.Fprintf(&f.body, "<polygon points=\"%s\" stroke-linejoin=\"round\" class=\"box %s\"/>\n",
		strings.TrimSpace(list.String()), class)
}

// Frame draws a dashed line around a part of the figure, with a label on its upper edge.
func (f *Figure) Frame(x, y, w, h float64, label string) {
	fmt.Fprintf(&f.body, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"10\" class=\"frame\"/>\n",
		number(x), number(y), number(w), number(h))
	f.Text(x+12, y+17, label, "small", Muted)
}

// Text writes a line that begins at the point. Size is "small", "normal", "name" (bold), or "code".
func (f *Figure) Text(x, y float64, text, size string, class Class) {
	f.text(x, y, size+" "+string(class)+"-text", "start", text)
}

// Middle writes a line whose middle is the point.
func (f *Figure) Middle(x, y float64, text, size string, class Class) {
	f.text(x, y, size+" "+string(class)+"-text", "middle", text)
}

// End writes a line that ends at the point.
func (f *Figure) End(x, y float64, text, size string, class Class) {
	f.text(x, y, size+" "+string(class)+"-text", "end", text)
}

func (f *Figure) text(x, y float64, class, anchor, text string) {
	fmt.Fprintf(&f.body, "<text x=\"%s\" y=\"%s\" class=\"%s\" text-anchor=\"%s\">%s</text>\n",
		number(x), number(y), class, anchor, html.EscapeString(text))
}

// Line draws a straight line without a head.
func (f *Figure) Line(from, to Point, class Class) {
	fmt.Fprintf(&f.body, "<path d=\"M%s %sL%s %s\" class=\"line %s\"/>\n",
		number(from.X), number(from.Y), number(to.X), number(to.Y), class)
}

// Arrow draws an arrow through the points.
func (f *Figure) Arrow(class Class, points ...Point) {
	var path strings.Builder
	for i, p := range points {
		fmt.Fprintf(&path, "%s%s %s", [2]string{"M", "L"}[min(i, 1)], number(p.X), number(p.Y))
	}
	fmt.Fprintf(&f.body, "<path d=\"%s\" class=\"arrow %s\" marker-end=\"url(#head-%s)\"/>\n", &path, class, class)
}

// SVG returns the drawing.
func (f *Figure) SVG() string {
	var heads strings.Builder
	for _, class := range []Class{Plain, Muted, Lit, Bad, Good, A, B, C} {
		if strings.Contains(f.body.String(), "#head-"+string(class)+")") {
			fmt.Fprintf(&heads, "<marker id=\"head-%s\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" "+
				"markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"+
				"<path d=\"M0 0.6L8 4L0 7.4z\" class=\"head %s\"/></marker>\n", class, class)
		}
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %[1]s %[2]s\" width=\"%[1]s\" "+
		"height=\"%[2]s\" role=\"img\" aria-labelledby=\"title desc\">\n"+
		"<title id=\"title\">%[3]s</title>\n<desc id=\"desc\">%[4]s</desc>\n<style>\n%[5]s</style>\n"+
		"<defs>\n%[6]s</defs>\n<rect x=\"0.5\" y=\"0.5\" width=\"%[7]s\" height=\"%[8]s\" rx=\"12\" class=\"page\"/>\n"+
		"%[9]s</svg>\n",
		number(f.width), number(f.height), html.EscapeString(f.title), html.EscapeString(f.desc), style(), &heads,
		number(f.width-1), number(f.height-1), &f.body)
}

// number formats a coordinate with at most one digit after the point.
func number(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

// TextWidth estimates the width of a text of size "small".
func TextWidth(text string) float64 { return 6.6 * float64(len([]rune(text))) }

// colours are those of a class: its surface, its line and its text.
type colours struct {
	class              Class
	surface, line, ink string
}

var light = []colours{
	{Plain, "#f3f5f7", "#97a3ae", "#1f2933"},
	{Muted, "#fbfcfc", "#cfd6dc", "#5f6b77"},
	{Lit, "#fff0cf", "#d58a00", "#5b3b00"},
	{Bad, "#fde4e1", "#c8372d", "#8e1f17"},
	{Good, "#dff3e6", "#2f8f5b", "#145a36"},
	{A, "#dfeafa", "#3f74c4", "#173f7c"},
	{B, "#e9e3f8", "#7a5cc0", "#452b83"},
	{C, "#dcf0ef", "#2b8a86", "#0e5552"},
}

var dark = []colours{
	{Plain, "#202933", "#6a7a8a", "#e6ebf0"},
	{Muted, "#181f27", "#3a4653", "#98a6b4"},
	{Lit, "#4a3510", "#e0a030", "#ffe3ad"},
	{Bad, "#4b1e1b", "#ef7d74", "#ffc9c4"},
	{Good, "#163d29", "#5fc48d", "#b9efd0"},
	{A, "#1b3354", "#6ea3ec", "#cfe1fb"},
	{B, "#332952", "#a88ee6", "#e0d6fb"},
	{C, "#123d3c", "#52bdb8", "#bfeeeb"},
}

// style returns the style sheet: the light colours, and the dark ones for readers who prefer them.
func style() string {
	const fonts = `text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;font-size:13px}
.code{font-family:ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace;font-size:12px}
.name{font-weight:600;font-size:12.5px}
.long,.small{font-size:12px}
.box{stroke-width:1.2}
.arrow{fill:none;stroke-width:1.4;stroke-linejoin:round}
.line{fill:none;stroke-width:1}
.frame{fill:none;stroke-width:1;stroke-dasharray:5 4}
.lit{stroke-width:1.8}
`
	var b strings.Builder
	b.WriteString(fonts)
	sheet(&b, light, "#ffffff", "#e2e6ea")
	b.WriteString("@media (prefers-color-scheme: dark){\n")
	sheet(&b, dark, "#12171d", "#2b343e")
	b.WriteString("}\n")
	return b.String()
}

func sheet(b *strings.Builder, all []colours, page, edge string) {
	fmt.Fprintf(b, ".page{fill:%s;stroke:%s}\n", page, edge)
	for _, c := range all {
		fmt.Fprintf(b, ".box.%[1]s{fill:%[2]s;stroke:%[3]s}.arrow.%[1]s,.line.%[1]s{stroke:%[3]s}"+
			".head.%[1]s{fill:%[3]s}.%[1]s-text{fill:%[4]s}\n", c.class, c.surface, c.line, c.ink)
		if c.class == Muted {
			fmt.Fprintf(b, ".frame{stroke:%s}\n", c.line)
		}
	}
}

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
