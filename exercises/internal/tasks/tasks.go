// Package tasks loads and tests the tasks of the book. Each task is a folder with a task.json, files to edit and tests.
package tasks

import (
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// NotWritten is the prefix of the panic in a function that the reader has to write.
const NotWritten = "not written yet: "

// A Task is an exercise.
type Task struct {
	// Name is the folder: the chapter's number, a letter for the order, and a word, as in 07a-queue.
	Name string `json:"-"`
	// Title names what the reader builds. For a task with a bug it is "Break it: " and the symptom.
	Title string `json:"title"`
	// Chapter is the page of the book, without its extension.
	Chapter string `json:"chapter"`
	// Files are the files to edit, in the task's folder.
	Files []string `json:"files"`
	// Given are the hashes that git has for Files as the reader gets them.
	Given []string `json:"given"`
	// Minutes is about how long the task takes.
	Minutes int `json:"minutes"`
	// Bug is the bug in the code; nil if the reader writes the code.
	Bug *Bug `json:"bug"`
	// Hints are increasingly detailed.
	Hints []string `json:"hints"`

	// Tests are the names of the tests, in order.
	Tests []string `json:"-"`
}

// A Bug is a real bug in a small copy of the code.
type Bug struct {
	// Project names the program with its version, and the file. Issue is the address of the report or of the fix.
	Project string `json:"project"`
	Issue   string `json:"issue"`
	// Test is the first test that fails, and Says a part of its message.
	Test string `json:"test"`
	Says string `json:"says"`
}

var (
	folder   = regexp.MustCompile(`^\d\d[a-z]-[a-z0-9-]+$`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\d+\w+)\(`)
)

// Load reads the tasks of the module in dir, in order.
func Load(dir string) ([]Task, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []Task
	for _, e := range entries {
		if !e.IsDir() || !folder.MatchString(e.Name()) {
			continue
		}
		t, err := load(dir, e.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no tasks in %s", dir)
	}
	return all, nil
}

func load(dir, name string) (Task, error) {
	t := Task{Name: name}
	file := filepath.Join(dir, name, "task.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return t, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&t); err != nil {
		return t, fmt.Errorf("read %s: %w", file, err)
	}
	if err := t.check(); err != nil {
		return t, fmt.Errorf("%s: %w", file, err)
	}
	tests, err := filepath.Glob(filepath.Join(dir, name, "*_test.go"))
	if err != nil {
		return t, err
	}
	for _, path := range tests {
		text, err := os.ReadFile(path)
		if err != nil {
			return t, err
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			t.Tests = append(t.Tests, m[1])
		}
	}
	if len(t.Tests) == 0 {
		return t, fmt.Errorf("%s has no tests Test1…, Test2…", name)
	}
	return t, nil
}

func (t Task) check() error {
	switch {
	case t.Title == "" || t.Chapter == "" || len(t.Files) == 0 || t.Minutes == 0:
		return errors.New("title, chapter, files and minutes must be set")
	case len(t.Given) != len(t.Files):
		return errors.New(`given must have a hash for each file: write "given": [], and run archtest with -update`)
	case !strings.HasPrefix(t.Chapter, t.Name[:2]) && t.Name[:2] <= "12":
		return fmt.Errorf("the folder is one of chapter %s, and chapter is %s", t.Name[:2], t.Chapter)
	case len(t.Hints) < 2 || len(t.Hints) > 4:
		return fmt.Errorf("there are %d hints, want two to four", len(t.Hints))
	case t.Bug != nil && (t.Bug.Project == "" || t.Bug.Issue == "" || t.Bug.Test == "" || t.Bug.Says == ""):
		return errors.New("project, issue, test and says of the bug must be set")
	}
	return nil
}

// Find returns the task whose name begins with the given text: "07a" is enough.
func Find(all []Task, name string) (Task, error) {
	found := slices.DeleteFunc(slices.Clone(all), func(t Task) bool { return !strings.HasPrefix(t.Name, name) })
	if len(found) != 1 {
		names := make([]string, 0, len(all))
		for _, t := range all {
			names = append(names, t.Name)
		}
		return Task{}, fmt.Errorf("%d tasks begin with %q; the tasks are %s",
			len(found), name, strings.Join(names, ", "))
	}
	return found[0], nil
}

// unwritten reports whether a file to edit still has a function that the reader has to write.
func (t Task) unwritten(dir string) bool {
	for _, name := range t.Files {
		text, err := os.ReadFile(filepath.Join(dir, t.Name, name))
		if err == nil && strings.Contains(string(text), NotWritten) {
			return true
		}
	}
	return false
}

// Hash returns the name that git gives to a text.
func Hash(text []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(text)), text...)))
}

// untouched reports whether the files to edit are as the reader got them.
func (t Task) untouched(dir string) bool {
	for i, name := range t.Files {
		text, err := os.ReadFile(filepath.Join(dir, t.Name, name))
		if err != nil || Hash(text) != t.Given[i] {
			return false
		}
	}
	return true
}

// UpTo returns the tasks from the given one up to the first that is not written, which is sure to fail.
func UpTo(dir string, all []Task, from int) []Task {
	for i := from; i < len(all); i++ {
		if all[i].unwritten(dir) {
			return all[from : i+1]
		}
	}
	return all[from:]
}
