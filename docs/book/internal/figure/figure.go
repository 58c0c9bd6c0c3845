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
