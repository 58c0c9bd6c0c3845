package localapi

import (
	"github.com/flyball-dev/flyball/localapi/builtin"
	"github.com/flyball-dev/flyball/localapi/internal/crd"
	"github.com/flyball-dev/flyball/localapi/resource"
)

// defaultDefinitions are the types that a server serves unless told otherwise.
func defaultDefinitions() []*resource.Definition { return append(builtin.All(), crd.Definition()) }
