package kit_test

import (
	"os/exec"
	"testing"

	"github.com/flyball-dev/flyball/internal/kit"
)

// A program is built once, and it runs.
func TestBuild(t *testing.T) {
	path := kit.Build(t, "./cmd/flyball")
	if again := kit.Build(t, "./cmd/flyball"); again != path {
		t.Errorf("built again at %s, after %s", again, path)
	}
	if output, err := exec.Command(path, "--help").CombinedOutput(); err != nil {
		t.Errorf("flyball --help: %v\n%s", err, output)
	}
}

// Without the variable, a test that needs a program is skipped.
func TestGuard(t *testing.T) {
	t.Setenv("FLYBALL_KIT", "")
	t.Run("skipped", func(t *testing.T) {
		defer func() {
			if !t.Skipped() {
				t.Error("it was not skipped")
			}
		}()
		kit.Guard(t)
	})
}
