package chapter03

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
)

// TestChapter03States draws the states of the reflector. Each arrow that follows a failure is a row of the table.
func TestChapter03States(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(book.Dir(), "..", "informer-cases.md"))
	if err != nil {
		t.Fatal(err)
	}
	const width, height, top, bottom = 170.0, 58.0, 70.0, 226.0
	const left, middle, right = 60.0, (figure.Width - width) / 2, figure.Width - width - 60
	f := figure.New("The states of a reflector", "It begins with listing or streaming. A complete list leads to "+
		"watching. A watch that ended in time is followed by another one, and a broken connection leads to verifying. "+
		"From there the reflector goes back to watching if the history is the same, and to listing if it went back. A "+
		"watch whose history is gone leads to listing.", figure.Width, bottom+height+24)
	f.Box(left, top, width, height, figure.A, "listing or streaming", "fetch everything")
	f.Box(right, top, width, height, figure.Good, "watching", "follow the changes")
	f.Box(middle, bottom, width, height, figure.Lit, "verifying", "is it the same history?")

	x := func(of, share float64) float64 { return of + width*share }
	from, to := x(left, 1)+4, right-4
	for _, arrow := range []struct {
		class  figure.Class
		points []figure.Point
		label  string
		at     figure.Point // the middle of the label
		row    string       // of the table: state, failure, condition, next; "" if no failure leads there
	}{
		{figure.Plain, []figure.Point{{X: left - 40, Y: top + 29}, {X: left - 4, Y: top + 29}}, "", figure.Point{}, ""},
		{
			figure.Good,
			[]figure.Point{{X: from, Y: top + 16}, {X: to, Y: top + 16}},
			"the list is complete",
			figure.Point{X: figure.Width / 2, Y: top + 9},
			"",
		},
		{
			figure.Bad,
			[]figure.Point{{X: to, Y: top + 44}, {X: from, Y: top + 44}},
			"410: the history is gone",
			figure.Point{X: figure.Width / 2, Y: top + 60},
			"| watch | expired | something was received since the last list | relist |",
		},
		{
			figure.Good,
			[]figure.Point{
				{X: x(right, 0.3), Y: top - 4},
				{X: x(right, 0.3), Y: top - 26},
				{X: x(right, 0.7), Y: top - 26},
				{X: x(right, 0.7), Y: top - 4},
			},
			"it ended in time",
			figure.Point{X: x(right, 0.5), Y: top - 34},
			"| watch | closed |  | watch |",
		},
		{
			figure.Lit,
			[]figure.Point{
				{X: x(right, 0.7), Y: top + height + 4},
				{X: x(right, 0.7), Y: bottom + 42},
				{X: x(middle, 1) + 4, Y: bottom + 42},
			},
			"the connection broke",
			figure.Point{X: x(right, 0.3), Y: bottom + 60},
			"| watch | broken, version ahead, earlier version |  | pause, verify |",
		},
		{
			figure.Good,
			[]figure.Point{
				{X: x(middle, 1) + 4, Y: bottom + 16},
				{X: x(right, 0.2), Y: bottom + 16},
				{X: x(right, 0.2), Y: top + height + 4},
			},
			"the same",
			figure.Point{X: x(middle, 1) + 42, Y: bottom + 9},
			"",
		},
		{
			figure.Bad,
			[]figure.Point{
				{X: middle - 4, Y: bottom + 29},
				{X: x(left, 0.5), Y: bottom + 29},
				{X: x(left, 0.5), Y: top + height + 4},
			},
			"it went back",
			figure.Point{X: middle - 66, Y: bottom + 22},
			"| verify | version ahead | the answer is older than the position | relist |",
		},
	} {
		if !strings.Contains(string(text), arrow.row) {
			t.Errorf("the table does not have the row %q", arrow.row)
		}
		f.Arrow(arrow.class, arrow.points...)
		f.Middle(arrow.at.X, arrow.at.Y, arrow.label, "small", arrow.class)
	}
	book.Figure(t, "03-states", f)
}
