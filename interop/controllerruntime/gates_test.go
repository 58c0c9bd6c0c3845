package controllerruntime_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/features"
)

// gates is set in a process whose main function sets client-go's feature gates.
const gates = "FLYBALL_TEST_GATES"

func setGates() {
	if err := os.Setenv("KUBE_FEATURE_"+string(features.ClientsAllowCBOR), "true"); err != nil {
		panic(err)
	}
	fmt.Println("enabled:", features.FeatureGates().Enabled(features.ClientsAllowCBOR))
}

// TestImportDoesNotReadFeatureGates: client-go reads its feature gates from the environment once, when they are asked
// for. Importing this package does not.
func TestImportDoesNotReadFeatureGates(t *testing.T) {
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), gates+"=1")
	out, err := program.Output()
	if err != nil || !strings.Contains(string(out), "enabled: true") {
		t.Errorf("%s, %v", out, err)
	}
}
