//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDelegate: in cgroup v2, process 1 moves into a group of its own, and child groups get all controllers.
func TestDelegate(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"cgroup.controllers": "cpu memory\n", "cgroup.subtree_control": ""} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := delegate(root); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"init/cgroup.procs": "1", "cgroup.subtree_control": "+cpu +memory"} {
		if have, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(have) != want {
			t.Errorf("%s has %q, want %q: %v", name, have, want, err)
		}
	}
}

// TestDelegateInVersion1: in cgroup v1 there is nothing to do.
func TestDelegateInVersion1(t *testing.T) {
	root := t.TempDir()
	if err := delegate(root); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) > 0 {
		t.Errorf("it wrote %v: %v", entries, err)
	}
}
