package main

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/flyball-dev/flyball/deploy/deploytest"
)

// program is items manager as it is deployed.
var program = deploytest.Program{
	Manifests: "deploy",
	Run: func(ctx context.Context, args []string, stderr io.Writer) error {
		if code := run(ctx, args, nil, stderr, stderr); code != 0 {
			return fmt.Errorf("exit code %d", code)
		}
		return nil
	},
}

func TestManifestIsRestricted(t *testing.T) {
	deploytest.Restricted(t, deploytest.Render(t, program.Manifests))
}

func TestDeployed(t *testing.T) { program.Works(t) }

func TestImage(t *testing.T) { program.WorksInContainer(t, deploytest.Image(t, program.Manifests)) }
