package main

import (
	"context"
	"io"
	"testing"

	"github.com/flyball-dev/flyball/deploy/deploytest"
)

// program is the operator as it is deployed.
var program = deploytest.Program{
	Manifests: "manifests",
	Run: func(ctx context.Context, args []string, stderr io.Writer) error {
		return run(ctx, args, stderr, stderr)
	},
}

func TestManifestIsRestricted(t *testing.T) {
	deploytest.Restricted(t, deploytest.Render(t, program.Manifests))
}

func TestDeployed(t *testing.T) { program.Works(t) }

func TestImage(t *testing.T) { program.WorksInContainer(t, deploytest.Image(t, program.Manifests)) }
