package tasks

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
)

// capstone names the tasks whose parts make the controller of chapter 13.
var capstone = []string{"02a", "03a", "04a", "05a", "06a", "07a", "07b", "08a", "09a", "10a"}

// Parts returns the parts of the controller of chapter 13. A part has passed if it is the reader's: if its tests pass
// or, with mine, if it is written.
func Parts(ctx context.Context, dir string, all []Task, mine bool) ([]Result, error) {
	parts := make([]Result, 0, len(capstone))
	var written []Task
	for _, name := range capstone {
		t, err := Find(all, name)
		if err != nil {
			return nil, err
		}
		parts = append(parts, Result{Task: t, Passed: mine && !t.unwritten(dir)})
		if !mine && !t.unwritten(dir) {
			written = append(written, t)
		}
	}
	if len(written) == 0 {
		return parts, nil
	}
	results, err := Run(ctx, dir, written)
	for _, r := range results {
		parts[slices.IndexFunc(parts, func(p Result) bool { return p.Task.Name == r.Task.Name })] = r
	}
	return parts, err
}

// Overlay returns a file for the flag -overlay of go, with which solutions replace the parts that have not passed.
func Overlay(dir string, parts []Result) ([]byte, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for _, r := range parts {
		if r.Passed {
			continue
		}
		for _, name := range r.Task.Files {
			replace[filepath.Join(dir, r.Task.Name, name)] = filepath.Join(dir, "_solutions", r.Task.Name, name)
		}
	}
	return json.Marshal(map[string]any{"Replace": replace})
}
