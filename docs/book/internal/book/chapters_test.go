package book

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	{"05-indexer", "The indexer", "a cache with indexes, and the Scheme behind it", []Part{Indexer}},
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
	{
		"13-capstone", "Your framework runs", "the parts that you built, as one controller that is proved",
		[]Part{Server, Reflector, DeltaFIFO, Indexer, Handlers, Workqueue, Loop, Sync, ListWatch, Writes},
	},
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
