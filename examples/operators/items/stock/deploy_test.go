package stock_test

import (
	"testing"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
)

// operator is the manager in a cluster. FLYBALL_UPDATE=1 writes its role.
var operator = optest.Operator{
	Namespace: "items", Name: "items-manager", RoleFile: "../deploy/role.yaml",
	Objects: func() ([]manifest.Object, error) { return manifest.ReadFiles([]string{"../deploy"}, nil) },
}

func TestManifestIsRestricted(t *testing.T) { operator.IsRestricted(t) }
