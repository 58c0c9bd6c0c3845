// Package store is where the commands that embed an API keep its objects.
package store

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
	"github.com/flyball-dev/flyball/localapi/storage/pebble"
)

// Options say which objects.
type Options struct {
	// Dir is a directory; "": memory, and nothing is left at the end.
	Dir string
	// Tenant is whose objects; several share a directory and never see each other.
	Tenant string
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Dir, "store", "", "the directory that keeps the objects, made if there is none; one process at a time can use it; empty: memory")
	fs.StringVar(&o.Tenant, "tenant", localapi.DefaultTenant, "whose objects; those of several tenants share a store and never see each other")
}

// Validate refuses names that no tenant can have.
func (o *Options) Validate() error { return storage.ValidateTenant(o.Tenant) }

// Open opens the store. The caller closes it.
func (o *Options) Open(ctx context.Context) (storage.Storage, error) {
	if o.Dir == "" {
		return memory.New(), nil
	}
	return pebble.Open(ctx, o.Dir, pebble.Options{})
}
