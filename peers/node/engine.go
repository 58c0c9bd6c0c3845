package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Needs returns what this machine lacks to run a node, or nil.
func Needs(ctx context.Context) error {
	if runtime.GOOS != "linux" {
		return errors.New("this is no Linux")
	}
	if _, err := docker(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("there is no docker engine: %w", err)
	}
	if have, err := docker(ctx, "image", "ls", "--quiet", rootImage()); err != nil || have != "" {
		return err
	}
	if os.Getuid() != 0 {
		return errors.New("the image of the node is not built yet, and debootstrap needs root")
	}
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("the image of the node is not built yet, and this is no Debian: %w", err)
		}
	}
	return nil
}

// docker runs the client and returns its output without spaces around it.
func docker(ctx context.Context, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "docker", args...))
}

// output runs a command and returns what it prints, without spaces around it. Its error holds what the command says.
func output(c *exec.Cmd) (string, error) {
	var says bytes.Buffer
	if c.Stderr == nil {
		c.Stderr = &says
	}
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, bytes.TrimSpace(says.Bytes()))
	}
	return strings.TrimSpace(string(out)), nil
}
