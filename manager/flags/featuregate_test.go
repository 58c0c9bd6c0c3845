package flags_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"

	"github.com/flyball-dev/flyball/manager/flags"
)

// A program's feature gates are those of component-base. Their flag is set by the configuration file, too.
func ExampleFlags_featureGates() {
	const fast featuregate.Feature = "Fast"
	gates := featuregate.NewFeatureGate()
	err := gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{fast: {PreRelease: featuregate.Alpha}})
	if err != nil {
		fmt.Println(err)
	}
	file := filepath.Join(os.TempDir(), "gates.yaml")
	defer os.Remove(file)
	err = os.WriteFile(file, []byte(`
apiVersion: flyball.dev/v1alpha1
kind: ManagerConfiguration
featureGates: {Fast: true}
`), 0o600)
	if err != nil {
		fmt.Println(err)
	}
	f, set := flags.New("my-operator"), pflag.NewFlagSet("my-operator", pflag.ContinueOnError)
	f.AddFlags(set)
	gates.AddFlag(set)
	if err := set.Parse([]string{"--config=" + file}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(f.Validate(), gates.Enabled(fast))
	// Output: <nil> true
}
