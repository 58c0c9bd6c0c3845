package pebble

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system that a store's engine works on. It stands between the engine and the real file system, and
// takes over when that fails.
//
// The obvious design returns the error to the engine. If the engine was writing its log or its manifest, it then ends
// the process. If it was writing a table, it retries for ever and without a pause, while writers wait for room in
// memory, and so does Open.
//
// Here the engine never hears of a failed write. (A write that lacks a file descriptor is tried again for a minute
// before it counts as failed.) At the first failure the directory is frozen: nothing in it changes any more, as if the
// process had been killed at that moment, and engines recover from that. What the engine creates after that is in
// memory, where it can be read, so reads go on. The store rejects every write that was not answered before the failure.
//
// Invariant: the real file system did every operation that reported success before failed was closed. So a caller that
// writes, and then finds failed open, knows that its write was done.
type disk struct {
	vfs.FS
	dir string

	// memory has the files created after the failure.
	memory *vfs.MemFS

	// failed is closed when the first write has failed or damage was found. err is the reason, and never changes
	// afterwards.
	failed chan struct{}
	err    error
	once   sync.Once

	// closing is closed when the store is closed. Compactions that begin after the failure wait for it, and then fail:
	// otherwise they would copy the store into memory, and the engine retries a failed compaction again and again. They
	// do not wait before opened is set, because Open waits for the compactions that it finds running, and starts no
	// others.
	closing chan struct{}
	opened  atomic.Bool

	// broken means that the engine stopped in the middle of something, with its locks held. It must not be called any
	// more, not even to close it.
	broken atomic.Bool

	// read is the name of the file in dir that was read last. Damage is in that file, unless the engine says more.
	read atomic.Pointer[string]

	// files has the files that are open. The engine does not close a table that it could not finish.
	mu    sync.Mutex
	files map[*file]struct{}
}

func newDisk(fs vfs.FS, dir string) *disk {
	return &disk{
		FS: fs, dir: filepath.Clean(dir), memory: vfs.NewMem(), failed: make(chan struct{}),
		closing: make(chan struct{}), files: map[*file]struct{}{},
	}
}

// file wraps a file that was opened on disk.
func (d *disk) file(opened vfs.File, name string) vfs.File {
	f := &file{File: opened, disk: d, name: name}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[f] = struct{}{}
	return f
}

// closeFiles closes the files that are still open.
func (d *disk) closeFiles() {
	d.mu.Lock()
	files := slices.Collect(maps.Keys(d.files))
	d.mu.Unlock()
	for _, f := range files {
		_ = f.Close() // Only a store that has failed has any.
	}
}

// failure returns the reason why the store takes no more writes, or nil.
func (d *disk) failure() error {
	select {
	case <-d.failed:
		return d.err
	default:
		return nil
	}
}

// freeze makes the store reject all further writes, because of err. Only the first call counts.
func (d *disk) freeze(err error) {
	d.once.Do(func() {
		_ = d.memory.MkdirAll(d.dir, 0o700) // cannot fail in memory
		d.err = err
		close(d.failed)
	})
}

// try calls do, which changes a file of the store, and reports whether it was done. If not, the directory is frozen.
func (d *disk) try(op, name string, do func() error) bool {
	frozen := false
	err := patiently(func() error {
		if frozen = d.failure() != nil; frozen {
			return nil
		}
		return do()
	})
	if err != nil {
		d.freeze(&failedError{Dir: d.dir, Err: pathError(op, name, err)})
	}
	return err == nil && !frozen
}

// patience is how long the store waits for a file descriptor.
const patience = time.Minute

// patiently calls do again for as long as too many files are open in the process or the system. No disk is broken for
// that: files and connections are closed again.
func patiently(do func() error) error {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if err := do(); !tooManyFiles(err) || time.Now().After(end) {
			return err
		}
	}
}

func tooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// holds reports whether the file is in the store's directory. Files elsewhere belong to a backup, whose failure does
// not affect the store.
func (d *disk) holds(name string) bool { return filepath.Dir(filepath.Clean(name)) == d.dir }

func (d *disk) lastRead() string {
	if name := d.read.Load(); name != nil {
		return *name
	}
	return ""
}

// Create implements vfs.FS.
func (d *disk) Create(name string, category vfs.DiskWriteCategory) (created vfs.File, err error) {
	if !d.holds(name) {
		return d.FS.Create(name, category)
	}
	if d.try("create", name, func() (err error) { created, err = d.FS.Create(name, category); return err }) {
		return d.file(created, name), nil
	}
	if category == "pebble-compaction" || category == "pebble-blob-file-rewrite" {
		if d.opened.Load() {
			<-d.closing
		}
		return nil, d.err
	}
	return d.memory.Create(name, category)
}

// ReuseForWrite implements vfs.FS.
func (d *disk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (reused vfs.File, err error) {
	if d.try("reuse", to, func() (err error) { reused, err = d.FS.ReuseForWrite(from, to, category); return err }) {
		return d.file(reused, to), nil
	}
	return d.memory.Create(to, category)
}

// Rename implements vfs.FS.
func (d *disk) Rename(from, to string) error {
	if !d.holds(to) {
		return d.FS.Rename(from, to)
	}
	if !d.try("rename", from, func() error { return d.FS.Rename(from, to) }) {
		_ = d.memory.Rename(from, to) // fails if the file is on disk, where it stays
	}
	return nil
}

// MkdirAll implements vfs.FS.
func (d *disk) MkdirAll(dir string, mode fs.FileMode) error {
	if filepath.Clean(dir) != d.dir {
		return d.FS.MkdirAll(dir, mode)
	}
	d.try("make", dir, func() error { return d.FS.MkdirAll(dir, mode) })
	return nil
}

// Remove implements vfs.FS. A file that cannot be removed does no harm, so it does not fail the store.
func (d *disk) Remove(name string) error {
	if d.holds(name) && d.failure() != nil {
		_ = d.memory.Remove(name) // fails if the file is on disk, where it stays
		return nil
	}
	return d.FS.Remove(name)
}

// Open implements vfs.FS.
func (d *disk) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	if d.failure() != nil {
		if f, err := d.memory.Open(name, options...); err == nil {
			return f, nil
		}
	}
	var f vfs.File
	err := patiently(func() (err error) { f, err = d.FS.Open(name, options...); return err })
	if err != nil || !d.holds(name) {
		return f, err
	}
	return d.file(f, name), nil
}

// OpenDir implements vfs.FS.
func (d *disk) OpenDir(name string) (vfs.File, error) {
	var f vfs.File
	err := patiently(func() (err error) { f, err = d.FS.OpenDir(name); return err })
	if err != nil || filepath.Clean(name) != d.dir {
		return f, err
	}
	return d.file(f, name), nil
}

// List implements vfs.FS.
func (d *disk) List(dir string) ([]string, error) {
	names, err := d.FS.List(dir)
	if err != nil || d.failure() == nil || filepath.Clean(dir) != d.dir {
		return names, err
	}
	inMemory, err := d.memory.List(d.dir)
	names = append(names, inMemory...)
	slices.Sort(names)
	return slices.Compact(names), err
}

// Stat implements vfs.FS.
func (d *disk) Stat(name string) (vfs.FileInfo, error) {
	if d.failure() != nil {
		if info, err := d.memory.Stat(name); err == nil {
			return info, nil
		}
	}
	return d.FS.Stat(name)
}

// Unwrap implements vfs.FS.
func (d *disk) Unwrap() vfs.FS { return d.FS }

// file is a file of a store.
type file struct {
	vfs.File
	disk *disk
	name string
}

// write calls do, which changes the file. The engine hears of the failure only if the file is a table: it abandons the
// table and writes another. It does not read its other files while the store is open.
func (f *file) write(op string, do func() error) error {
	if !f.disk.try(op, f.name, do) && (strings.HasSuffix(f.name, ".sst") || strings.HasSuffix(f.name, ".blob")) {
		return f.disk.err
	}
	return nil
}

// Write implements vfs.File.
func (f *file) Write(p []byte) (int, error) {
	n := len(p)
	if err := f.write("write", func() error { _, err := f.File.Write(p); return err }); err != nil {
		return 0, err
	}
	return n, nil
}

// WriteAt implements vfs.File.
func (f *file) WriteAt(p []byte, at int64) (int, error) {
	n := len(p)
	if err := f.write("write", func() error { _, err := f.File.WriteAt(p, at); return err }); err != nil {
		return 0, err
	}
	return n, nil
}

// Sync implements vfs.File.
func (f *file) Sync() error { return f.write("sync", f.File.Sync) }

// SyncData implements vfs.File.
func (f *file) SyncData() error { return f.write("sync", f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *file) SyncTo(length int64) (full bool, err error) {
	err = f.write("sync", func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full && err == nil, err
}

// Preallocate implements vfs.File. It is only an optimization: if the disk is too full for it, the write will find out.
func (f *file) Preallocate(offset, length int64) error {
	if f.disk.failure() != nil {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

// Close implements vfs.File.
func (f *file) Close() error {
	f.disk.mu.Lock()
	delete(f.disk.files, f)
	f.disk.mu.Unlock()
	if err := f.File.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return f.write("close", func() error { return err })
	}
	return nil
}

// Read implements vfs.File.
func (f *file) Read(p []byte) (int, error) {
	f.note()
	return f.File.Read(p)
}

// ReadAt implements vfs.File.
func (f *file) ReadAt(p []byte, at int64) (int, error) {
	f.note()
	return f.File.ReadAt(p, at)
}

func (f *file) note() {
	name := filepath.Base(f.name)
	f.disk.read.Store(&name)
}
