package book

import (
	"fmt"
	"strings"

	"github.com/flyball-dev/flyball/docs/book/internal/figure"
)

// stages are the boxes of the pipeline: where each stands (column and row), its name, and what it does.
var stages = [...]struct {
	column, row int
	name, does  string
}{
	Server:    {0, 0, "API server", "has the objects"},
	Reflector: {1, 0, "reflector", "follows the server"},
	DeltaFIFO: {2, 0, "DeltaFIFO", "orders the changes"},
	Indexer:   {3, 0, "indexer", "the cache"},
	Handlers:  {3, 1, "event handlers", "map changes to keys"},
	Workqueue: {2, 1, "work queue", "which key, and when"},
	Loop:      {1, 1, "processNextWorkItem", "takes one key"},
	Sync:      {0, 1, "syncHandler", "makes it so"},
}

// flows are the arrows between the stages and what moves along them.
var flows = [...]struct {
	from, to Part
	label    string
	part     Part // the part that the arrow itself is, if it is one
}{
	{Server, Reflector, "watch", ListWatch},
	{Reflector, DeltaFIFO, "deltas", parts},
	{DeltaFIFO, Indexer, "batch", parts},
	{Indexer, Handlers, "batch", parts},
	{Handlers, Workqueue, "keys", parts},
	{Workqueue, Loop, "key", parts},
	{Loop, Sync, "key", parts},
	{Sync, Server, "writes", Writes},
}

const (
	boxWidth, boxHeight = 136.0, 58.0
	columnPitch         = 181.0
	top, rowPitch       = 34.0, 122.0
	left                = 20.5
)

// Pipeline draws the pipeline as a chapter sees it: the parts that it is about are lit.
func Pipeline(c Chapter) *figure.Figure {
	var lit []string
	for p, s := range stages {
		if c.lights(Part(p)) {
			lit = append(lit, s.name)
		}
	}
	desc := "A circle: the API server, the reflector, the DeltaFIFO, the indexer, the event handlers, the work " +
		"queue, processNextWorkItem, syncHandler, and from there writes back to the API server."
	if len(lit) > 0 {
		desc += " This chapter is about: " + strings.Join(lit, ", ") + "."
	}
	f := figure.New("The pipeline of a controller", desc, figure.Width, 252)
	if c.lights(Process) {
		const right, bottom, inner = figure.Width - left + 10, top + rowPitch + boxHeight + 14, left + columnPitch - 16
		const step = top + rowPitch - 16 // below the API server
		f.Area(figure.Lit, figure.Point{X: inner, Y: top - 16}, figure.Point{X: right, Y: top - 16},
			figure.Point{X: right, Y: bottom}, figure.Point{X: left - 10, Y: bottom},
			figure.Point{X: left - 10, Y: step}, figure.Point{X: inner, Y: step})
	}
	for p, s := range stages {
		class := figure.Plain
		if c.lights(Part(p)) {
			class = figure.Lit
		}
		x, y := corner(Part(p))
		size := boxWidth
		if Part(p) == Loop {
			size += 24 // the longest name
			x -= 12
		}
		f.Box(x, y, size, boxHeight, class, s.name, s.does)
	}
	for _, flow := range flows {
		class := figure.Plain
		if flow.part != parts && c.lights(flow.part) {
			class = figure.Lit
		}
		drawFlow(f, flow.from, flow.to, flow.label, class)
	}
	return f
}

func corner(p Part) (x, y float64) {
	return left + columnPitch*float64(stages[p].column), top + rowPitch*float64(stages[p].row)
}

func drawFlow(f *figure.Figure, from, to Part, label string, class figure.Class) {
	x1, y1 := corner(from)
	x2, y2 := corner(to)
	text := class
	if class == figure.Plain {
		text = figure.Muted
	}
	gap := func(p Part) float64 { // to the edge of a box
		if p == Loop {
			return 16
		}
		return 4
	}
	switch {
	case y1 < y2: // down, on the right
		x := x1 + boxWidth/2
		f.Arrow(class, figure.Point{X: x, Y: y1 + boxHeight + 4}, figure.Point{X: x, Y: y2 - 4})
		f.Text(x+8, (y1+boxHeight+y2)/2+4, label, "small", text)
	case y1 > y2: // up, on the left
		x := x1 + boxWidth/2
		f.Arrow(class, figure.Point{X: x, Y: y1 - 4}, figure.Point{X: x, Y: y2 + boxHeight + 4})
		f.Text(x+8, (y2+boxHeight+y1)/2+4, label, "small", text)
	case x1 < x2:
		f.Arrow(class, figure.Point{X: x1 + boxWidth + 4, Y: y1 + boxHeight/2},
			figure.Point{X: x2 - 4, Y: y2 + boxHeight/2})
		f.Middle((x1+boxWidth+x2)/2, y1+boxHeight/2-8, label, "small", text)
	default:
		f.Arrow(class, figure.Point{X: x1 - gap(from), Y: y1 + boxHeight/2},
			figure.Point{X: x2 + boxWidth + gap(to), Y: y2 + boxHeight/2})
		f.Middle((x2+boxWidth+gap(to)+x1-gap(from))/2, y1+boxHeight/2-8, label, "small", text)
	}
}

// pipelineName is the name of the chapter's drawing.
func pipelineName(c Chapter) string { return fmt.Sprintf("pipeline-%02d", c.Number()) }
