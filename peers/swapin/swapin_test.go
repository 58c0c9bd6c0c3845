package swapin

import (
	"os/exec"
	"testing"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// TestOperatorOnTheRealServer: two replicas of an operator come to the same with controller-runtime's own parts, with
// Flyball's, and under Flyball's manager. The operator and the test are those of interop/controllerruntime/example.
func TestOperatorOnTheRealServer(t *testing.T) {
	plane, err := upstream.Start(t.Context(), upstream.Options{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	test := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run=TestOperator$", "-v", "./example",
		"-args", "-on="+plane.Kubeconfig)
	test.Dir = "../../interop/controllerruntime"
	out, err := test.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
