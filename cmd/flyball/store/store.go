// Package store is where the commands that embed an API keep its objects.
package store

import (
	"context"
	"errors"

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

// UntilFailed returns a context that ends when the store takes no more writes, with the reason as its cause. release gives up what it
// takes.
func UntilFailed(ctx context.Context, objects storage.Storage) (until context.Context, release func()) {
	if onDisk, ok := objects.(*pebble.Store); ok {
		return onDisk.UntilFailed(ctx)
	}
	return context.WithCancel(ctx)
}

// Failure is why the store takes no more writes; nil while it does.
func Failure(objects storage.Storage) error {
	if onDisk, ok := objects.(*pebble.Store); ok {
		return onDisk.Err()
	}
	return nil
}

// ExitCode is the code of a process that ends with err, if that is about a store: the first when the disk failed, the second when the
// store is damaged.
func ExitCode(err error) (code int, is bool) {
	switch {
	case errors.As(err, new(*pebble.FailedError)):
		return exitFailed, true
	case errors.As(err, new(*pebble.DamagedError)):
		return exitDamaged, true
	}
	return 0, false
}

const (
	exitFailed  = 3
	exitDamaged = 4
)

// ExitCodes are the codes of ExitCode, for people.
const ExitCodes = `3 when the disk of --store cannot be written, 4 when the store is damaged`
