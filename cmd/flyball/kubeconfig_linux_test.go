package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKubeconfigIsARegularFile: what is none is refused at once, and keeps its mode.
func TestKubeconfigIsARegularFile(t *testing.T) {
	dir := t.TempDir()
	fifo, socket := filepath.Join(dir, "fifo"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mknod(socket, syscall.S_IFSOCK|0o644, 0); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, socket, dir, os.DevNull} {
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		code, _, errs := flyball(ctx, "serve", "--kubeconfig", path, "--controllers=")
		if code != 1 || !strings.Contains(errs, path+": it is no regular file") || ctx.Err() != nil {
			t.Errorf("%s: exit code %d, %q, %v", path, code, errs, ctx.Err())
		}
		cancel()
		if after, err := os.Stat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s: the mode is %v, was %v, %v", path, after.Mode(), before.Mode(), err)
		}
	}
}
