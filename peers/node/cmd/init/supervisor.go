//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// again is how long a program that has ended stays down.
	again = time.Second
	// grace is how long a program may take to end when it is told to.
	grace = 20 * time.Second
)

// supervisor runs programs.
type supervisor struct {
	logs string

	mu       sync.Mutex
	programs map[string]*program // by name: those that shall run
	running  map[int]*program    // by process: those that run
}

// program is a program that shall run.
type program struct {
	name    string
	command []string
	pid     int // 0 if it does not run
	// ended is closed, by reap, when the process has ended. Start replaces it.
	ended chan struct{}
}

func newSupervisor(logs string) *supervisor {
	return &supervisor{logs: logs, programs: map[string]*program{}, running: map[int]*program{}}
}

// start starts a program under a name that is free.
func (s *supervisor) start(name string, command []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.programs[name] != nil {
		return fmt.Errorf("%s runs already", name)
	}
	p := &program{name: name, command: command}
	if err := s.launchLocked(p); err != nil {
		return err
	}
	s.programs[name] = p
	return nil
}

// launchLocked starts the process. The lock keeps reap from looking for it before it is in running.
func (s *supervisor) launchLocked(p *program) error {
	log, err := os.OpenFile(filepath.Join(s.logs, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	process, err := os.StartProcess(p.command[0], p.command, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{nil, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	p.pid, p.ended = process.Pid, make(chan struct{})
	s.running[p.pid] = p
	return process.Release()
}

// stop ends a program. It returns when the process has ended, and does nothing if there is no such program.
func (s *supervisor) stop(name string) {
	s.mu.Lock()
	p := s.programs[name]
	delete(s.programs, name)
	if p == nil || p.pid == 0 {
		s.mu.Unlock()
		return
	}
	pid, ended := p.pid, p.ended
	_ = syscall.Kill(pid, syscall.SIGTERM) // it is not reaped yet, so the number is still its own
	s.mu.Unlock()
	select {
	case <-ended:
		return
	case <-time.After(grace):
	}
	s.mu.Lock()
	if p.pid == pid {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.mu.Unlock()
	<-ended
}

// reap waits for every child: for programs, and for processes whose parents have ended. It returns when ctx is done and
// there are no children.
func (s *supervisor) reap(ctx context.Context) {
	for {
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		switch {
		case err == nil:
			s.reaped(pid)
		case errors.Is(err, syscall.ECHILD):
			select {
			case <-ctx.Done():
				return
			case <-time.After(again / 10):
			}
		}
	}
}

func (s *supervisor) reaped(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.running[pid]
	if p == nil {
		return
	}
	delete(s.running, pid)
	p.pid = 0
	close(p.ended)
	if s.programs[p.name] == p {
		time.AfterFunc(again, func() { s.restart(p) })
	}
}

// restart starts a program that has ended, unless it was stopped meanwhile.
func (s *supervisor) restart(p *program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.programs[p.name] != p {
		return
	}
	if err := s.launchLocked(p); err != nil {
		fmt.Fprintf(os.Stderr, "init: start %s: %v\n", p.name, err)
		time.AfterFunc(again, func() { s.restart(p) })
	}
}
