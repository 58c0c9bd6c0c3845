package pebble

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"k8s.io/klog/v2"
)

// private is the operating system's file system. Its files are for the user of the process alone: a store holds
// secrets, and its directory may have been there before, for all to read.
type private struct{ vfs.FS }

// Create implements vfs.FS. A file that exists is removed, as by the engine's own file system.
func (p private) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	for {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			if err = f.Close(); err != nil {
				return nil, err
			}
			return p.OpenReadWrite(name, category)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// Unwrap implements vfs.FS.
func (p private) Unwrap() vfs.FS { return p.FS }

// restrict makes the files of a store, which an older version of this package may have written, unreadable for other
// users. It logs a directory that other users may open.
func (p private) restrict(ctx context.Context, dir string) error {
	names, err := p.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
			return err
		}
	}
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		klog.FromContext(ctx).Info("Other users may open the directory of the store, but none of its files: chmod 700 "+
			"keeps them out", "dir", dir, "mode", info.Mode().Perm().String())
	}
	return err
}
