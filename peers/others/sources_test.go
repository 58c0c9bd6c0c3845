package others

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// cache is the folder of sources and programs, which outlives the test.
func cache(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("find a folder for the sources: %v (set XDG_CACHE_HOME)", err)
	}
	dir = filepath.Join(dir, "flyball", "operators")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// source returns a folder with a writable copy of a module, so that it can be a main module. It is made once, and
// whole.
func source(t *testing.T, module, version string) string {
	t.Helper()
	dir := filepath.Join(cache(t), filepath.FromSlash(module)+"@"+version)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	half := fmt.Sprintf("%s.%d", dir, os.Getpid())
	t.Cleanup(func() { _ = os.RemoveAll(half) })
	if err := copyTree(half, downloaded(t, module, version)); err != nil {
		t.Fatalf("copy %s: %v", module, err)
	}
	if err := os.Rename(half, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// downloaded is the folder of a module in Go's module cache.
func downloaded(t *testing.T, module, version string) string {
	t.Helper()
	var m struct{ Dir, Error string }
	text := command(t, cache(t), "go", "mod", "download", "-json", module+"@"+version)
	if err := json.Unmarshal(text, &m); err != nil || m.Dir == "" {
		t.Fatalf("download %s@%s: %v %s", module, version, err, m.Error)
	}
	return m.Dir
}

// copyTree copies a folder. Files of the module cache are read-only; the copies are not.
func copyTree(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o200)
	})
}

// program builds a suite. Without arguments it does so once; with arguments our own code is in the program, which
// changes.
func program(t *testing.T, module string, o operator, args ...string) string {
	t.Helper()
	own := strconv.FormatBool(len(args) > 0)
	key := sha256.Sum256([]byte(strings.Join([]string{runtime.Version(), module, o.suite, o.tags, own}, "\n")))
	target := filepath.Join(cache(t), "bin", hex.EncodeToString(key[:8]))
	if _, err := os.Stat(target); err == nil && len(args) == 0 {
		return target
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	half := fmt.Sprintf("%s.%d", target, os.Getpid())
	t.Cleanup(func() { _ = os.RemoveAll(half) })
	args = append([]string{"test", "-c", "-vet=off", "-tags=" + o.tags, "-o", half}, args...)
	command(t, module, "go", append(args, o.suite)...)
	if err := os.Rename(half, target); err != nil {
		t.Fatal(err)
	}
	return target
}

// command runs a program in a folder and returns what it printed.
func command(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	cmd.Dir = dir
	// The module's own go.mod counts, and may be completed: it is a copy.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}
