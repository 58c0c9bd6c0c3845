// Package kit builds the programs that tests run. Building takes longer than most tests, so those that need a built
// program run in a target of their own, make test-kit, and are skipped elsewhere. Each program is built once.
package kit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

const (
	// enabled is the environment variable that makes the tests run.
	enabled = "FLYBALL_KIT"
	// folder is the environment variable with the folder for the programs. The default is bin/kit in the repository.
	folder = "FLYBALL_KIT_DIR"
)

// Guard skips the test unless FLYBALL_KIT is set. A test that builds or runs programs calls it first.
func Guard(t testing.TB) {
	t.Helper()
	if os.Getenv(enabled) == "" {
		t.Skip("builds programs: make test-kit runs it")
	}
}

// program is a build that is under way or done.
type program struct {
	sync.Once
	path string
	err  error
}

// programs has the programs of this process, by package.
var programs sync.Map

// Build returns the path of the program in a package of this repository, such as ./cmd/flyball. Like Guard, it skips
// the test unless FLYBALL_KIT is set.
//
// The first call builds the program, without the race detector. Processes share the folder with the programs, so go
// build finds the program of another process up to date and returns at once.
func Build(t testing.TB, pkg string) (path string) {
	t.Helper()
	Guard(t)
	value, _ := programs.LoadOrStore(pkg, &program{})
	p := value.(*program)
	p.Do(func() { p.path, p.err = build(pkg) })
	if p.err != nil {
		t.Fatalf("build %s: %v", pkg, p.err)
	}
	return p.path
}

// build builds a program while no other process does.
func build(pkg string) (path string, err error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := os.Getenv(folder)
	if dir == "" {
		dir = filepath.Join(root, "bin", "kit")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(dir, ".lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(pkg))
	command := exec.Command("go", "build", "-o", path, pkg)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(output)))
	}
	return path, nil
}

// Root returns the folder of the repository: the nearest one above that has the module of the tools.
func Root() (dir string, err error) {
	if dir, err = os.Getwd(); err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "tools", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("there is no tools/go.mod above this folder")
		}
	}
}
