package pebble

import "github.com/cockroachdb/pebble/v2/vfs"

// OnFS returns o with another file system.
func OnFS(o Options, fs vfs.FS) Options {
	o.fs = fs
	return o
}
