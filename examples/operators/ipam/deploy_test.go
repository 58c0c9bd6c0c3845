package main

import (
	"testing"

	"github.com/flyball-dev/flyball/deploy/deploytest"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
)

// deployed is the operator as it is deployed.
var deployed = deploytest.Program{
	Manifests: "testdata/withoutmultus",
	Run:       run,
}

func TestManifestIsRestricted(t *testing.T) {
	deploytest.Restricted(t, deploytest.Render(t, deployed.Manifests))
}

func TestDeployed(t *testing.T) { deployed.Works(t) }

func TestImage(t *testing.T) { deployed.WorksInContainer(t, deploytest.Image(t, deployed.Manifests)) }

func TestFlags(t *testing.T) {
	optest.Refuses(t, run, map[string]string{
		"nonsense":                     `unexpected argument "nonsense"`,
		"--port=99999":                 "--port 99999",
		"--show-for=x":                 "invalid argument",
		"--kubeconfig=/does/not/exist": "/does/not/exist",
	})
}
