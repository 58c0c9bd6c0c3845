package pebble_test

import (
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// kind is what a change of a file system does.
type kind int

const (
	takesSpace kind = iota // creates, writes, renames
	flushes
	removes
)

// fault is a way in which a disk fails.
type fault struct {
	name string
	err  error
	// once is whether only one operation fails; else all that follow do, too.
	once bool
	// spares are those that succeed all the same.
	spares []kind
}

var faults = []fault{
	{name: "full", err: syscall.ENOSPC, spares: []kind{flushes, removes}},
	{name: "read-only", err: syscall.EROFS},
	{name: "broken", err: syscall.EIO},
	{name: "broken once", err: syscall.EIO, once: true},
}

// faultFS is a file system whose n-th change fails, and those after it if the fault says so. n 0: none.
type faultFS struct {
	vfs.FS
	fault

	mu      sync.Mutex
	n       int
	changes int // so far
	failed  bool
	open    map[*faultFile]string
}

// change counts a change and returns the error that it fails with.
func (f *faultFS) change(k kind) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, spared := range f.spares {
		if k == spared {
			return nil
		}
	}
	f.changes++
	if f.changes == f.n || f.n > 0 && f.changes > f.n && !f.once {
		f.failed = true
		return f.err
	}
	return nil
}

// heal ends the fault, as by making room.
func (f *faultFS) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n = 0
}

func (f *faultFS) hasFailed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *faultFS) file(name string, created vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	opened := &faultFile{created, f}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[*faultFile]string{}
	}
	f.open[opened] = name
	return opened, nil
}

// openFiles returns the names of the files that are open.
func (f *faultFS) openFiles() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Values(f.open))
}

func (f *faultFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.change(takesSpace); err != nil {
		return nil, err
	}
	created, err := f.FS.Create(name, category)
	return f.file(name, created, err)
}

func (f *faultFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.change(takesSpace); err != nil {
		return nil, err
	}
	reused, err := f.FS.ReuseForWrite(from, to, category)
	return f.file(to, reused, err)
}

func (f *faultFS) OpenDir(name string) (vfs.File, error) {
	dir, err := f.FS.OpenDir(name)
	return f.file(name, dir, err)
}

func (f *faultFS) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	opened, err := f.FS.Open(name, options...)
	return f.file(name, opened, err)
}

func (f *faultFS) Rename(from, to string) error {
	if err := f.change(takesSpace); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *faultFS) MkdirAll(dir string, mode os.FileMode) error {
	if _, err := f.FS.Stat(dir); err == nil {
		return nil
	}
	if err := f.change(takesSpace); err != nil {
		return err
	}
	return f.FS.MkdirAll(dir, mode)
}

func (f *faultFS) Remove(name string) error {
	if err := f.change(removes); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

type faultFile struct {
	vfs.File
	fs *faultFS
}

func (f *faultFile) Close() error {
	f.fs.mu.Lock()
	delete(f.fs.open, f)
	f.fs.mu.Unlock()
	return f.File.Close()
}

func (f *faultFile) Write(p []byte) (int, error) {
	if err := f.fs.change(takesSpace); err != nil {
		n, _ := f.File.Write(p[:len(p)/2]) // as a disk does that becomes full
		return n, err
	}
	return f.File.Write(p)
}

func (f *faultFile) Sync() error {
	if err := f.fs.change(flushes); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultFile) SyncData() error {
	if err := f.fs.change(flushes); err != nil {
		return err
	}
	return f.File.SyncData()
}

func (f *faultFile) SyncTo(length int64) (bool, error) {
	if err := f.fs.change(flushes); err != nil {
		return false, err
	}
	return f.File.SyncTo(length)
}
