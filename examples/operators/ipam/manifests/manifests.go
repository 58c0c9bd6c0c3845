package manifests

import (
	"context"
	"embed"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
)

//go:embed crds/*.yaml multus/*_*.yaml operator.yaml role.yaml
var files embed.FS

// Objects returns the objects in the manifests.
func Objects() ([]manifest.Object, error) {
	return manifest.ReadFS(files, "crds/*", "multus/*", "*.yaml")
}

// Install creates the missing objects, and waits until the resources are served.
func Install(ctx context.Context, c client.Client) error {
	objects, err := Objects()
	if err != nil {
		return err
	}
	return manifest.Install(ctx, c, objects)
}
