//go:build !linux

package upstream

import "syscall"

// ChildAttributes returns what keeps a child from the terminal's Ctrl-C. If the parent is killed, the child stays.
func ChildAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
