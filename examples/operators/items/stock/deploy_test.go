package stock_test

import (
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
)

// operator is the manager in a cluster. Its role is compared with what the controllers call.
var operator = optest.Operator{
	Namespace: "items", Name: "items-manager",
	Manifests: []string{"../deploy"},
}
