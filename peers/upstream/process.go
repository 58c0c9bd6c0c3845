package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a program whose output goes to a file.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when the program has ended, by the goroutine that waits for it
}

// Run starts a program that ends with the control plane. Its output goes to NAME.log in Dir.
func (c *ControlPlane) Run(name, path string, args ...string) (pid int, err error) {
	log, err := os.Create(c.file(name + ".log"))
	if err != nil {
		return 0, err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = ChildAttributes()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, log: log.Name(), ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the exit code of a program told to stop says nothing
		close(p.ended)
	}()
	c.processes = append(c.processes, p)
	fmt.Fprintf(c.options.Log, "started %s (pid %d)\n", name, cmd.Process.Pid)
	return cmd.Process.Pid, nil
}

// stop asks the program to end, and ends it after ten seconds.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(10 * time.Second):
	}
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.ended
	return nil
}

// Tail returns the end of the output of the last program that was started.
func (c *ControlPlane) Tail() string { return c.processes[len(c.processes)-1].tail() }

// tail is the end of the program's output.
func (p *process) tail() string {
	const most = 2000
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}
