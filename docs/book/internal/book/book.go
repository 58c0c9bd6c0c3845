package book

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/internal/docblock"
)

// A Part is a part of the drawing of the pipeline.
type Part int

// The parts, in the direction in which a change travels.
const (
	Server Part = iota
	Reflector
	DeltaFIFO
	Indexer
	Handlers
	Workqueue
	Loop
	Sync
	ListWatch // the arrow from the server to the reflector
	Writes    // the arrow from syncHandler to the server
	Process   // the frame around all but the server
	parts
)

// A Chapter is an entry of the table of contents.
type Chapter struct {
	// Page is the name of the file in docs/book, without its ending.
	Page, Title string
	// About is one line for the table of contents.
	About string
	// Lit are the parts of the pipeline that the chapter is about.
	Lit []Part
}

// Chapters are the chapters and the pages after them, in the order of reading.
var Chapters = []Chapter{
	{
		"01-control-loop", "A control loop by hand",
		"a shell loop that keeps three copies running, and what goes wrong",
		[]Part{Server, Sync, ListWatch, Writes},
	},
	{"02-list-and-watch", "List and watch", "resource versions, bookmarks, 410", []Part{Server, ListWatch}},
	{"03-reflector", "The reflector", "how to follow a server that fails: recovery as a table", []Part{Reflector}},
	{"04-deltafifo", "DeltaFIFO", "changes in order, and what may be merged", []Part{DeltaFIFO}},
	{"05-indexer", "The indexer", "a cache with indexes", []Part{Indexer}},
	{
		"06-informers", "Informers and handlers", "many readers of one stream, some of them slow",
		[]Part{Reflector, DeltaFIFO, Indexer, Handlers},
	},
	{"07-workqueue", "The work queue", "which key is next, and when", []Part{Workqueue}},
	{
		"08-sync-handler", "processNextWorkItem and syncHandler", "errors, retries, and keys that always fail",
		[]Part{Loop, Sync},
	},
	{
		"09-read-your-writes", "Reading your own writes", "a cache that is late, and how to act on it",
		[]Part{Indexer, Writes},
	},
	{"10-endpoints", "Endpoints and EndpointSlice", "a real controller, line by line", []Part{Sync}},
	{"11-deployment", "Deployment and ReplicaSet", "a rollout as a plan", []Part{Sync, Writes}},
	{"12-process", "The process", "leader election, health, stopping, many clusters", []Part{Process}},
	{"a-proving", "Appendix A. Proving a controller", "crash it after every write", nil},
	{"b-seeing", "Appendix B. Seeing it run", "what happens to an object, and why nothing does", nil},
	{"c-coming-from", "Appendix C. Coming from client-go and controller-runtime", "names side by side", nil},
	{"patterns", "Reconciler patterns", "what good reconcilers have in common", nil},
	{"when-to-use", "When to use this, and when not", "other ways to the same end", nil},
	{"glossary", "Glossary", "each term, and the chapter that explains it", nil},
}

// contents returns the table of contents in Markdown. A page that is not written yet has no link.
func contents() string {
	var b strings.Builder
	for i, c := range Chapters {
		title := c.Title
		if c.Number() > 0 {
			title = fmt.Sprintf("%d. %s", i+1, title)
		}
		if c.Written() {
			title = fmt.Sprintf("[%s](%s.md)", title, c.Page)
		}
		fmt.Fprintf(&b, "- %s: %s.\n", title, c.About)
	}
	return b.String()
}

// Number is the number of a chapter; 0 for the pages after the chapters.
func (c Chapter) Number() (n int) {
	if _, err := fmt.Sscanf(c.Page, "%02d-", &n); err != nil {
		return 0
	}
	return n
}

// Written reports whether the page exists.
func (c Chapter) Written() bool {
	_, err := os.Stat(filepath.Join(Dir(), c.Page+".md"))
	return err == nil
}

// lights reports whether the chapter is about the part.
func (c Chapter) lights(p Part) bool { return slices.Contains(c.Lit, p) }

var update = flag.Bool("update", false, "write the blocks and figures of the book anew, instead of comparing them")

// Trace compares what a program printed with the block that the page has for this test, as preformatted text. Page is
// the name of a chapter's file, without its ending.
func Trace(t testing.TB, page, text string) {
	t.Helper()
	Block(t, page, "```text\n"+strings.TrimRight(text, "\n")+"\n```")
}

// Block is [Trace] for Markdown: a table, for example. The block stands between <!-- made by NAME --> and
// <!-- end of NAME -->, where NAME is the name of the test.
func Block(t testing.TB, page, markdown string) {
	t.Helper()
	file := filepath.Join(Dir(), page+".md")
	if *update {
		if err := docblock.Write(file, t.Name(), markdown); err != nil {
			t.Error(err)
			return
		}
	}
	got, err := docblock.Read(file, t.Name())
	if err != nil {
		t.Error(err)
	} else if want := strings.TrimSpace(markdown); got != want {
		t.Errorf("docs/book/%s.md does not show what the program does now: run make book-update and read the text "+
			"around it. It shows:\n%s\nThe program does:\n%s", page, got, want)
	}
}

// Figure compares a drawing with docs/book/images/NAME.svg.
func Figure(t testing.TB, name string, f *figure.Figure) {
	t.Helper()
	file, want := filepath.Join(Dir(), "images", name+".svg"), f.SVG()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Error(err)
			return
		}
	}
	if got, err := os.ReadFile(file); err != nil {
		t.Errorf("%v: run make book-update", err)
	} else if string(got) != want {
		t.Errorf("docs/book/images/%s.svg does not show what the program does now: run make book-update, look at the "+
			"figure and read the text around it", name)
	}
}

// Dir returns the folder of the book: the nearest one above the test that has WRITING.md.
func Dir() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "WRITING.md")); missing == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// stages are the boxes of the pipeline: where each stands (column and row), its name, and what it does.
var stages = [...]struct {
	column, row int
	name, does  string
}{
	Server:    {0, 0, "API server", "has the objects"},
	Reflector: {1, 0, "reflector", "follows the server"},
	DeltaFIFO: {2, 0, "DeltaFIFO", "orders the changes"},
	Indexer:   {3, 0, "indexer", "the cache"},
	Handlers:  {3, 1, "event handlers", "turn changes into keys"},
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
			size += 16 // the longest name
			x -= 8
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
			return 12
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
