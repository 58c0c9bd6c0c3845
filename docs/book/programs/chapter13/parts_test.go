package chapter13

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
)

// parts are the tasks in the order in which a change travels.
var parts = []struct{ task, passes string }{
	{"02a-client", "events"},
	{"03a-reflector", "events"},
	{"04a-log", "batches"},
	{"05a-index", "changes"},
	{"06a-fanout", "keys"},
	{"07a-queue", "keys"},
	{"08a-loop", "a key"},
	{"10a-endpoints", "writes"},
}

// TestChapter13Parts draws the tasks that the controller is made of, and checks that it imports them.
func TestChapter13Parts(t *testing.T) {
	var code strings.Builder
	files, err := filepath.Glob(filepath.Join(book.Dir(), "../../exercises/13-capstone/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	const width, height, pitch = 120.0, 44.0, 176.0
	f := figure.New("The controller of chapter 13", "A circle of the tasks that the controller is made of: the API "+
		"server, 02a client, 03a reflector, 04a log, 05a index, 06a fan-out, 07a queue with 07b delays, 08a loop, 10a "+
		"plan with 09a ledger, and from there writes back to the API server.", figure.Width, 330)
	at := func(i int) (x, y float64) { // down on the left, and up on the right
		if i < 4 {
			return 24 + pitch*float64(i), 110
		}
		return 24 + pitch*float64(7-i), 240
	}
	f.Box(24, 12, width, height, figure.Plain, "API server")
	f.Arrow(figure.Plain, figure.Point{X: 60, Y: 60}, figure.Point{X: 60, Y: 106})
	f.Text(68, 88, "list and watch", "small", figure.Muted)
	for i, p := range parts {
		if !strings.Contains(code.String(), "exercises/"+p.task+`"`) {
			t.Errorf("exercises/13-capstone does not import %s", p.task)
		}
		x, y := at(i)
		number, name, _ := strings.Cut(p.task, "-")
		f.Box(x, y, width, height, figure.Lit, fmt.Sprintf("%s %s", number, name))
		switch {
		case i == len(parts)-1: // back to the server, outside on the left
			f.Arrow(figure.Lit, figure.Point{X: x - 4, Y: y + height/2}, figure.Point{X: 10, Y: y + height/2},
				figure.Point{X: 10, Y: 34}, figure.Point{X: 20, Y: 34})
			f.Text(20, 186, p.passes, "small", figure.Muted)
		case i < 3:
			f.Arrow(figure.Plain, figure.Point{X: x + width + 4, Y: y + height/2},
				figure.Point{X: x + pitch - 4, Y: y + height/2})
			f.Middle(x+(width+pitch)/2, y+height/2-8, p.passes, "small", figure.Muted)
		case i == 3:
			f.Arrow(figure.Plain, figure.Point{X: x + width/2, Y: y + height + 4}, figure.Point{X: x + width/2, Y: 236})
			f.Text(x+width/2+8, 200, p.passes, "small", figure.Muted)
		default:
			f.Arrow(figure.Plain, figure.Point{X: x - 4, Y: y + height/2},
				figure.Point{X: x - pitch + width + 4, Y: y + height/2})
			f.Middle(x-(pitch-width)/2, y+height/2-8, p.passes, "small", figure.Muted)
		}
	}
	for _, beside := range []struct {
		i    int
		text string
	}{{5, "07b delay: keys for later"}, {7, "09a ledger: own writes"}} {
		x, y := at(beside.i)
		f.Text(x, y+height+20, beside.text, "small", figure.Muted)
	}
	book.Figure(t, "13-parts", f)
}
