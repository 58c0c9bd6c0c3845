//go:build linux

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestSupervisor starts a program, kills it, and sees that it is started again, until it is stopped.
func TestSupervisor(t *testing.T) {
	s := newSupervisor(t.TempDir())
	ctx, end := context.WithCancel(t.Context())
	var reaping sync.WaitGroup
	reaping.Go(func() { s.reap(ctx) })
	defer reaping.Wait() // a second one would wait for the first one's children
	defer end()
	command := []string{"/bin/sh", "-c", "echo started; exec sleep 1000"}
	if err := s.start("p", command); err != nil {
		t.Fatal(err)
	}
	if err := s.start("p", command); err == nil {
		t.Error("a program was started twice")
	}
	await(t, s, 1)
	if err := syscall.Kill(s.pid("p"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, s, 2)
	pid := s.pid("p")
	s.stop("p")
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("after it was stopped: %v", err)
	}
	if s.pid("p") != 0 || len(s.running) > 0 {
		t.Errorf("left: %v, %v", s.programs, s.running)
	}
	s.stop("p") // does nothing
}

// TestSupervisorRefuses a program that is not there.
func TestSupervisorRefuses(t *testing.T) {
	s := newSupervisor(t.TempDir())
	if err := s.start("p", []string{"/none"}); err == nil || s.pid("p") != 0 {
		t.Errorf("started: %v", err)
	}
}

// pid returns the process of a program that shall run.
func (s *supervisor) pid(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.programs[name]; p != nil {
		return p.pid
	}
	return 0
}

// await waits until the program has been started so often.
func await(t *testing.T, s *supervisor, times int) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		text, err := os.ReadFile(filepath.Join(s.logs, "p.log"))
		if err == nil && strings.Count(string(text), "started") == times {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("started %q, want %d times: %v", text, times, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
