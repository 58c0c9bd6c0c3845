package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestServeChild is flyball serve, in a process of its own for TestIdleConnections.
func TestServeChild(t *testing.T) {
	dir := os.Getenv("FLYBALL_TEST_SERVE")
	if dir == "" {
		t.Skip("it is run by TestIdleConnections")
	}
	os.Exit(run(context.Background(), []string{
		"serve", "--kubeconfig", filepath.Join(dir, "kubeconfig"), "--store", filepath.Join(dir, "store"),
		"--controllers", "",
	}, os.Stdout, os.Stderr))
}

// TestIdleConnections: connections that bring no request, more than the process may open files, keep neither clients
// out nor the store from its files.
func TestIdleConnections(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	child := exec.CommandContext(ctx, "sh", "-c", `ulimit -n 64; exec "$0" -test.run '^TestServeChild$'`, binary)
	child.Env = append(os.Environ(), "FLYBALL_TEST_SERVE="+dir)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Signal(syscall.SIGTERM)
		if err := child.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	}()
	config := configOf(ctx, t, filepath.Join(dir, "kubeconfig"))
	maps := clientOf(ctx, t, filepath.Join(dir, "kubeconfig")).CoreV1().ConfigMaps("default")
	create := func(n int) error {
		large := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", n)},
			BinaryData: map[string][]byte{"k": make([]byte, 700_000)},
		}
		_, err := maps.Create(ctx, large, metav1.CreateOptions{})
		return err
	}
	if err := create(0); err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 150; n++ {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", host.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if n%5 > 0 {
			continue
		}
		if err := create(n); err != nil { // the store begins a new log, and tables, every few writes
			t.Fatalf("a write with %d idle connections: %v", n, err)
		}
	}
}
