package upstream

import "syscall"

// ChildAttributes returns what makes a child end with its parent, however that ends, and keeps it from the terminal's
// Ctrl-C.
func ChildAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
