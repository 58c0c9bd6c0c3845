package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/deploy/deploytest"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
)

// TestManifestIsRestricted holds the Deployment to the security checklist, and its flags to those of the program.
func TestManifestIsRestricted(t *testing.T) {
	objects := deploytest.Render(t, "manifests")
	deploytest.Restricted(t, objects)
	deploytest.Accepted(t, objects)
	deploytest.Accepted(t, deploytest.Render(t, "manifests/build"))
	args, _ := deploytest.Command(t, objects)
	o, set := process.NewOptions(), pflag.NewFlagSet("ci", pflag.ContinueOnError)
	o.AddFlags(set)
	if err := set.Parse(args); err != nil || len(o.Controllers) != 5 {
		t.Errorf("%q: %v, %d controllers", args, err, len(o.Controllers))
	}
}

// TestImage: without its configuration, the program in the image says what it lacks.
func TestImage(t *testing.T) {
	image := deploytest.Image(t, "manifests")
	const says = "--ci-operator-config-path is required"
	if out, code := deploytest.Contained(t, image); code != 1 || !strings.Contains(out, says) {
		t.Errorf("exit code %d, %q", code, out)
	}
}
