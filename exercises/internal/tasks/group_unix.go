//go:build unix

package tasks

import (
	"os/exec"
	"syscall"
)

// inGroup gives the command a group of processes of its own, which ends with it.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
