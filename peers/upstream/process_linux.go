package upstream

import "syscall"

// childAttributes make a child end with its parent, however that ends, and keep it from the terminal's Ctrl-C.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
