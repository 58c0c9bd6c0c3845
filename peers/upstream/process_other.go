//go:build !linux

package upstream

import "syscall"

// childAttributes keep a child from the terminal's Ctrl-C. If the parent is killed, the child stays.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
