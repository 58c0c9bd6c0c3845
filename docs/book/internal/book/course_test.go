package book

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hard and easy are the tasks that are not of medium difficulty.
var (
	hard = []string{"03a", "06a", "07b", "08a", "09a", "10a", "12a"}
	easy = []string{"01a", "02b", "03c", "05b", "06c", "08b", "09b", "10b", "12b"}
)

// A task is what the plan of the course says of a task of the exercises.
type task struct {
	Title, Chapter string
	Files          []string
	Minutes        int
	folder         string
}

// tasks returns the tasks in the order of their folders.
func tasks(t *testing.T) (all []task) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Dir(), "../../exercises/*/task.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no tasks: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		own := task{folder: filepath.Base(filepath.Dir(file))}
		if err == nil {
			err = json.Unmarshal(data, &own)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, own)
	}
	return all
}

func (t task) difficulty() string {
	switch {
	case slices.Contains(hard, t.folder[:3]):
		return "●●●"
	case slices.Contains(easy, t.folder[:3]):
		return "●"
	}
	return "●●"
}

// TestCourse lists the sessions of the course with their tasks, as task.json has them.
func TestCourse(t *testing.T) {
	var b strings.Builder
	b.WriteString("| session | to read | tasks, with minutes and difficulty | minutes |\n|---|---|---|---|\n")
	all, sum := tasks(t), 0
	for _, c := range Chapters {
		n, minutes := c.Number(), 0
		if n == 0 || !c.Written() {
			continue
		}
		var own []string
		for _, task := range all {
			if task.Chapter == c.Page {
				minutes += task.Minutes
				own = append(own, fmt.Sprintf("[%s](../../exercises/%[1]s/%s) %d %s", task.folder, task.Files[0],
					task.Minutes, task.difficulty()))
			}
		}
		if n > 12 {
			n++ // after the session about the appendices
		}
		fmt.Fprintf(&b, "| %d | [%s](%s.md) | %s | %d |\n", n, c.Title, c.Page, strings.Join(own, "; "), minutes)
		if n == 12 {
			b.WriteString("| 13 | [Appendix A](a-proving.md), [appendix B](b-seeing.md), " +
				"[patterns](patterns.md) | | |\n")
		}
		sum += minutes
	}
	fmt.Fprintf(&b, "| | | all tasks | %d |\n", sum)
	Block(t, "COURSE", b.String())
}
