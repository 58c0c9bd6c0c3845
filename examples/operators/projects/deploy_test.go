package main

import (
	"testing"

	"github.com/flyball-dev/flyball/deploy/deploytest"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
)

// deployed is the operator as it is deployed.
var deployed = deploytest.Program{
	Manifests: "manifests",
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
		"--poll=x":                     "invalid argument",
		"--kubeconfig=/does/not/exist": "/does/not/exist",

		"--control-plane-kubeconfig=/does/not/exist": "--control-plane-kubeconfig: ",

		"--master=http://127.0.0.1:1 --leader-elect=false --port=0 --control-plane-url={{": "unclosed action",
		"--master=http://127.0.0.1:1 --leader-elect=false --port=0 --project-selector=!!":  "LabelSelector",
	})
}
