package operators

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// TestIPAM plays the scenarios of the ipam operator.
func TestIPAM(t *testing.T) { play(t, "ipam", "TestScenarios$") }

// TestProjects plays the scenarios of the project operator. Projects are on the real API server, their control planes
// in the process of its tests.
func TestProjects(t *testing.T) { play(t, "projects", "TestScenarios$") }

// TestCI plays the scenario of the CI operators, on two real control planes.
func TestCI(t *testing.T) {
	build, err := upstream.Start(t.Context(), upstream.Options{AuthorizationMode: "RBAC", Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := build.Stop(); err != nil {
			t.Error(err)
		}
	})
	play(t, "ci", "TestScenario$", "FLYBALL_BUILD_KUBECONFIG="+build.Kubeconfig)
}

// play runs one of the operator's own tests on the control plane of this package.
func play(t *testing.T, operator, test string, env ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "test", "-count", "1", "-run", test, "-v", ".")
	command.Dir = filepath.Join("..", "..", "examples", "operators", operator)
	command.Env = append(append(os.Environ(), "FLYBALL_KUBECONFIG="+plane.Kubeconfig), env...)
	output, err := command.CombinedOutput()
	if t.Logf("%s", output); err != nil {
		t.Fatal(err)
	}
}
