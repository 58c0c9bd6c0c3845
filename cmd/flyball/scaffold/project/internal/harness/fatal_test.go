package harness

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// TestFatal: a test that ends by t.Fatal stops its manager. What it has said is printed, and the other tests
// of the package run.
func TestFatal(t *testing.T) {
	if os.Getenv("FATAL") != "" {
		setup := func(ctrl.Manager) error { return nil }
		Run(t, setup, func(t *testing.T, _ client.Client) { t.Fatal("this is wrong") })
		return
	}
	command := exec.Command(os.Args[0], "-test.run=^TestFatal$")
	command.Env = append(os.Environ(), "FATAL=1")
	out, err := command.CombinedOutput()
	text := string(out)
	if err == nil || !strings.Contains(text, "this is wrong") || strings.Contains(text, "panic") {
		t.Errorf("%v\n%s", err, text)
	}
}
