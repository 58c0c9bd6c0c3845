package pebble

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// crowded is a file system that finds too many files open at the first attempts to create one.
type crowded struct {
	vfs.FS
	attempts int // so far
	refused  int // how many of them fail
}

func (c *crowded) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if c.attempts++; c.attempts <= c.refused {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	return c.FS.Create(name, category)
}

// A store that fails while it waits for a file descriptor changes nothing on disk when there is one again.
func TestNoFileIsCreatedAfterTheFailure(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			under := &crowded{FS: vfs.NewMem(), refused: 3}
			d := newDisk(under, "store")
			if err := under.MkdirAll("store", 0o700); err != nil {
				t.Fatal(err)
			}
			if fails {
				time.AfterFunc(15*time.Millisecond, func() { d.freeze(errors.New("the disk is broken")) })
			}
			f, err := d.Create(filepath.Join("store", "1.log"), vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			_ = f.Close()
			_, err = under.Stat(filepath.Join("store", "1.log"))
			if onDisk := err == nil; onDisk == fails {
				t.Errorf("store fails: %v, file on disk: %v after %d attempts", fails, onDisk, under.attempts)
			}
			if (d.failure() != nil) != fails {
				t.Errorf("store fails: %v, failure %v", fails, d.failure())
			}
		})
	}
}
