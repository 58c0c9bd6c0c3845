//go:build !unix

package tasks

import "os/exec"

// inGroup does nothing: the test ends by its own time-out.
func inGroup(*exec.Cmd) {}
