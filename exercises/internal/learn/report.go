package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/flyball-dev/flyball/exercises/internal/tasks"
)

// A report is what make learn REPORT=1 prints.
type report struct {
	Tasks []taskReport `json:"tasks"`
	Total total        `json:"total"`
}

type taskReport struct {
	Task    string `json:"task"`
	Title   string `json:"title"`
	Chapter string `json:"chapter"`
	// State is that of tasks.Result.
	State       string `json:"state"`
	Passed      bool   `json:"passed"`
	Compiles    bool   `json:"compiles"`
	TestsPassed int    `json:"testsPassed"`
	Tests       int    `json:"tests"`
	// Failed is the first test that fails, and Message says why. It has the errors of the compiler if there are any.
	Failed  string `json:"failed,omitempty"`
	Message string `json:"message,omitempty"`
}

type total struct {
	Passed      int `json:"passed"`
	Tasks       int `json:"tasks"`
	TestsPassed int `json:"testsPassed"`
	Tests       int `json:"tests"`
}

// write writes the report about results as JSON.
func write(out io.Writer, dir string, results []tasks.Result) error {
	r := report{Total: total{Tasks: len(results)}}
	for _, of := range results {
		t := of.Task
		r.Tasks = append(r.Tasks, taskReport{
			Task: t.Name, Title: t.Title, Chapter: t.Chapter, State: of.State(dir), Passed: of.Passed,
			Compiles: of.Compiles, TestsPassed: of.Done, Tests: len(t.Tests), Failed: of.Test, Message: of.Message,
		})
		if of.Passed {
			r.Total.Passed++
		}
		r.Total.TestsPassed += of.Done
		r.Total.Tests += len(t.Tests)
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// record adds the states of tasks to bin/learn.json, from which flyball learn shows them, and returns all of the file.
func record(dir string, results []tasks.Result) (map[string]string, error) {
	bin := filepath.Join(dir, "..", "bin")
	file := filepath.Join(bin, "learn.json")
	states := map[string]string{}
	if text, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(text, &states) // A file that is not JSON is replaced.
	}
	for _, r := range results {
		states[r.Task.Name] = r.State(dir)
	}
	text, err := json.MarshalIndent(states, "", "  ")
	if err == nil {
		err = os.MkdirAll(bin, 0o750)
	}
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	return states, err
}
