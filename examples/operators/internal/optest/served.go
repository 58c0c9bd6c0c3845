package optest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// answersWithin is how long the API may take to answer.
const answersWithin = time.Minute

// Served is a running "flyball serve": a cluster in a process of its own.
type Served struct {
	// Kubeconfig is the file with the cluster's kubeconfig, and Config its content.
	Kubeconfig string
	Config     *rest.Config

	cmd *exec.Cmd
	// ended receives the error of the process once, when it ends. The goroutine that waits for the process sends it.
	// Capacity 1, so that it never blocks.
	ended chan error
}

// StartServe runs the flyball program with "serve" in a process of its own, which writes its kubeconfig to a file. It
// returns when the API answers. Call Stop on the result.
//
// Errors: ctx's; the program cannot be started, has ended, or does not answer, with what it printed.
func StartServe(ctx context.Context, flyball, kubeconfig string) (*Served, error) {
	var out bytes.Buffer
	c := &Served{
		Kubeconfig: kubeconfig, cmd: exec.Command(flyball, "serve", "--kubeconfig", kubeconfig),
		ended: make(chan error, 1),
	}
	c.cmd.Stdout, c.cmd.Stderr = &out, &out
	// Ctrl-C is for the example, which stops the process when it is done.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s serve: %w", flyball, err)
	}
	go func() { c.ended <- c.cmd.Wait() }()
	deadline, stop := context.WithTimeoutCause(ctx, answersWithin, fmt.Errorf("no answer within %v", answersWithin))
	defer stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !c.answers() {
		select {
		case err := <-c.ended:
			return nil, fmt.Errorf("%s serve has ended: %w\n%s", flyball, err, out.Bytes())
		case <-deadline.Done():
			return nil, errors.Join(fmt.Errorf("%s serve: %w", flyball, context.Cause(deadline)), c.Stop())
		case <-tick.C:
		}
	}
	return c, nil
}

// answers reports whether there is a kubeconfig, and its server answers.
func (c *Served) answers() bool {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return false
	}
	config.Timeout = time.Second
	asks, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false
	}
	if _, err := asks.ServerVersion(); err != nil {
		return false
	}
	config.Timeout = 0
	c.Config = config
	return true
}

// Stop asks the process to end, and waits until it has.
func (c *Served) Stop() error {
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop flyball serve: %w", err)
	}
	if err := <-c.ended; err != nil {
		return fmt.Errorf("flyball serve: %w", err)
	}
	return nil
}
