package localapi

import "github.com/flyball-dev/flyball/localapi/internal/resource"

// Serving returns options for a server of the given types only.
func (o Options) Serving(definitions ...*resource.Definition) Options {
	o.definitions = definitions
	return o
}
