package pebble

import "github.com/cockroachdb/pebble/v2/vfs"

// The types of errors.
type (
	FailedError  = failedError
	DamagedError = damagedError
	InUseError   = inUseError
)

// OnFS returns o with another file system.
func OnFS(o Options, fs vfs.FS) Options {
	o.fs = fs
	return o
}

// WithMemTable returns o with tables of a size.
func WithMemTable(o Options, size uint64) Options {
	o.memTableSize = size
	return o
}
