package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tinyDisk mounts a disk of some size.
func tinyDisk(t *testing.T, size string) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func resize(t *testing.T, dir, size string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size="+size); err != nil {
		t.Fatal(err)
	}
}

// configMaps are n of them, of 8 KB each.
func configMaps(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {x: %s}\n", i,
			strings.Repeat("y", 8000))
	}
	return text.String()
}

// TestFullDisk: a run that fills its disk ends with a sentence and code 3, and so does the next, until there is room;
// then all that was applied is there. A server in that state answers reads.
func TestFullDisk(t *testing.T) {
	disk := tinyDisk(t, "2m")
	dir, file := filepath.Join(disk, "store"), write(t, t.TempDir(), "many.yaml", configMaps(300))
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute) // It flushes to a disk hundreds of times.
	defer cancel()
	code, out, errs := flyball(ctx, "run", "-f", file, "--store", dir)
	applied := strings.Count(out, "created")
	if code != 3 ||
		!strings.Contains(errs,
			"no space left on device. What it answered before is stored: make room, and start again") || applied == 0 {
		t.Fatalf("a run that fills the disk: exit code %d: %s\n%d applied", code, errs, applied)
	}
	code, _, errs = flyball(ctx, "run", "--store", dir)
	if code != 3 || !strings.Contains(errs, "no space left on device") {
		t.Errorf("a run on a full disk: exit code %d: %s", code, errs)
	}
	resize(t, disk, "20m")
	code, out, errs = flyball(ctx, "run", "-f", file, "--store", dir)
	if unchanged := strings.Count(out, "unchanged"); code != 0 || unchanged < applied {
		t.Errorf("a run when there is room again: exit code %d: %s\n%d were applied, %d are there", code, errs,
			applied, unchanged)
	}
	resize(t, disk, "5m")
	serveFull(ctx, t, dir)
}

// serveFull fills a disk through a server.
func serveFull(ctx context.Context, t *testing.T, dir string) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	serving, stop := context.WithCancel(ctx)
	ended := make(chan int, 1)
	go func() {
		code, _, _ := flyball(serving, "serve", "--kubeconfig", kubeconfig, "--store", dir, "--controllers", "")
		ended <- code
	}()
	all := clientOf(ctx, t, kubeconfig).CoreV1().ConfigMaps("default")
	var err error
	for i := 0; err == nil && i < 2000; i++ {
		big := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "big-"},
			Data:       map[string]string{"x": strings.Repeat("y", 8000)},
		}
		_, err = all.Create(ctx, big, metav1.CreateOptions{})
	}
	if _, retried := apierrors.SuggestsClientDelay(err); apierrors.ReasonForError(err) != metav1.StatusReasonUnknown ||
		retried ||
		!strings.Contains(fmt.Sprint(err), "no space left on device") {
		t.Errorf("a write to a full disk: %v", err)
	}
	if _, err := all.Get(ctx, "c1", metav1.GetOptions{}); err != nil {
		t.Errorf("a read from a full disk: %v", err)
	}
	stop()
	if code := <-ended; code != 3 {
		t.Errorf("the server ended with %d", code)
	}
}

// TestDamagedStore: it is named, and the code is 4.
func TestDamagedStore(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "store"), write(t, t.TempDir(), "few.yaml", configMaps(5))
	if code, _, errs := flyball(t.Context(), "run", "-f", file, "--store", dir); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	write(t, dir, filepath.Base(logs[0]), string(text))
	code, _, errs := flyball(t.Context(), "run", "-f", file, "--store", dir)
	if code != 4 || !strings.Contains(errs, "is damaged, in "+filepath.Base(logs[0])) ||
		strings.Count(errs, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
