//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// prepare makes the container a place for a kubelet.
func prepare() error {
	// The mounts of the kubelet reach the containers of its pods.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share the mounts: %w", err)
	}
	if err := unlock("/sys"); err != nil {
		return err
	}
	// A pod that reaches another one of this node through a Service must get its answer by the same way.
	const filter = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	if err := os.WriteFile(filter, []byte("1"), 0o644); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return delegate("/sys/fs/cgroup")
}

// unlock makes the mounts at and below a folder writable, which an unprivileged container has read-only.
func unlock(folder string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		at := strings.Fields(line)[1]
		if at != folder && !strings.HasPrefix(at, folder+"/") {
			continue
		}
		const flags = syscall.MS_REMOUNT | syscall.MS_BIND | syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
		if err := syscall.Mount("", at, "", flags, ""); err != nil {
			return fmt.Errorf("make %s writable: %w", at, err)
		}
	}
	return nil
}

// delegate lets child groups use all controllers, if this is cgroup v2: a group that has children with controllers must
// have no processes of its own, so that process 1 moves. In cgroup v1 there is nothing to do.
func delegate(root string) error {
	text, err := os.ReadFile(root + "/cgroup.controllers")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root+"/init", 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(root+"/init/cgroup.procs", []byte("1"), 0o644); err != nil {
		return err
	}
	all := strings.Fields(string(text))
	for i, c := range all {
		all[i] = "+" + c
	}
	return os.WriteFile(root+"/cgroup.subtree_control", []byte(strings.Join(all, " ")), 0o644)
}
