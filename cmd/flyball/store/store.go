// Package store opens the store of the commands that embed an API.
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

// Options selects the objects.
type Options struct {
	// Dir is the directory of the store. Empty means that the objects are in memory and are lost at the end.
	Dir string
	// Tenant is the tenant that owns the objects. Several tenants can share a directory; they do not see each other's
	// objects.
	Tenant string
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Dir, "store", "",
		"the directory that stores the objects, created if it does not exist; only one process at a time can use it; "+
			"empty means in memory")
	fs.StringVar(&o.Tenant, "tenant", localapi.DefaultTenant,
		"the tenant that owns the objects; several tenants can share a store and do not see each other's objects")
}

// Validate returns an error if the tenant's name is invalid.
func (o *Options) Validate() error { return storage.ValidateTenant(o.Tenant) }

// Open opens the store. The caller closes it.
func (o *Options) Open(ctx context.Context) (storage.Storage, error) {
	if o.Dir == "" {
		return memory.New(), nil
	}
	return pebble.Open(ctx, o.Dir, pebble.Options{})
}

// UntilFailed returns a context that ends when the store no longer accepts writes, with the reason as its cause. The
// caller must call release to free its resources.
func UntilFailed(ctx context.Context, objects storage.Storage) (until context.Context, release func()) {
	if onDisk, ok := objects.(*pebble.Store); ok {
		return onDisk.UntilFailed(ctx)
	}
	return context.WithCancel(ctx)
}

// Failure returns why the store no longer accepts writes, or nil while it does.
func Failure(objects storage.Storage) error {
	if onDisk, ok := objects.(*pebble.Store); ok {
		return onDisk.Err()
	}
	return nil
}

// ExitCode returns the exit code of a process that ends with err, and whether err is about a store: exitFailed if the
// disk failed, exitDamaged if the store is damaged.
func ExitCode(err error) (code int, is bool) {
	switch {
	case errors.Is(err, pebble.ErrFailed):
		return exitFailed, true
	case errors.Is(err, pebble.ErrDamaged):
		return exitDamaged, true
	}
	return 0, false
}

const (
	exitFailed  = 3
	exitDamaged = 4
)

// ExitCodes describes the codes of ExitCode for people.
const ExitCodes = `3 when the disk of --store cannot be written, 4 when the store is damaged`
