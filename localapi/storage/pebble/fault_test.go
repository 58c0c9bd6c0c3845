package pebble_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/pebble"
)

// patience is how long a call may take before it counts as stuck.
const patience = 30 * time.Second

// TestFaults has the changes that a small workload makes on its disk fail, in each of the ways that disks fail: every
// seventh change, or with FLYBALL_FAULTS every one. Every call returns; a write that fails says why; what was
// answered can be read, before and after the store is opened again, also after a power failure.
func TestFaults(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	for i, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			calm := newTrial(t, fault, 0)
			calm.run()
			changes := calm.fs.changes
			if changes < 50 {
				t.Fatalf("the workload makes only %d changes", changes)
			}
			step := 7
			if os.Getenv("FLYBALL_FAULTS") != "" {
				step = 1
			}
			for n := 1 + i%step; n <= changes; n += step {
				newTrial(t, fault, n).run()
				if t.Failed() {
					return
				}
			}
			t.Logf("%d changes", changes)
		})
	}
}

// trial is a workload on a disk that fails.
type trial struct {
	t        *testing.T
	name     string
	memory   *vfs.MemFS
	fs       *faultFS
	answered map[string]storage.Record // by key: what was acknowledged; revision 0: it was deleted
	inDoubt  map[string]bool           // keys with a write that failed

	lastWrites [2]replaced // the older first
}

// replaced is what a write replaced. A key that did not exist has revision 0.
type replaced struct {
	key    string
	before storage.Record
}

func newTrial(t *testing.T, fault fault, n int) *trial {
	memory := vfs.NewCrashableMem()
	return &trial{
		t: t, name: fmt.Sprintf("%s from change %d", fault.name, n), memory: memory,
		fs:       &faultFS{FS: memory, fault: fault, n: n},
		answered: map[string]storage.Record{}, inDoubt: map[string]bool{},
	}
}

// within fails the test if call gets stuck.
func (tr *trial) within(what string, call func()) {
	done := make(chan struct{})
	go func() { defer close(done); call() }()
	select {
	case <-done:
	case <-time.After(patience):
		panic(tr.name + ": " + what + " is stuck") // with the stacks of all goroutines
	}
}

func (tr *trial) open(fs vfs.FS) (s *pebble.Store, err error) {
	tr.within("open", func() {
		s, err = pebble.Open(context.Background(), "store",
			pebble.WithMemTable(pebble.OnFS(pebble.Options{RecentWrites: 5}, fs), 64<<10))
	})
	return s, err
}

func (tr *trial) run() {
	tr.within("the workload", func() {
		s, err := tr.open(tr.fs)
		if err != nil {
			tr.sentence("open", err)
			return
		}
		tr.work(s, 24)
		tr.checkFailed(s)
		tr.check("afterwards", s)
		closeErr := s.Close()
		if s.Err() != nil && !errors.Is(closeErr, s.Err()) {
			tr.t.Errorf("%s: close: %v, but the store failed: %v", tr.name, closeErr, s.Err())
		}
		if open := tr.fs.openFiles(); len(open) > 0 {
			tr.t.Errorf("%s: the closed store has %q open", tr.name, open)
		}
	})
	if s, err := tr.open(tr.fs); err == nil { // while the fault lasts
		tr.check("opened during the fault", s)
		tr.within("close", func() { _ = s.Close() })
	} else {
		tr.sentence("open again", err)
	}
	crashed := tr.memory.CrashClone(vfs.CrashCloneCfg{})
	tr.fs.heal()
	for what, fs := range map[string]vfs.FS{"opened after the fault": tr.fs, "opened after a power failure": crashed} {
		s, err := tr.open(fs)
		if err != nil {
			tr.t.Errorf("%s: %s: %v", tr.name, what, err)
			continue
		}
		tr.check(what, s)
		if _, err := s.Put(context.Background(), storage.Write{Key: "a/new", Value: []byte("1")}); err != nil {
			tr.t.Errorf("%s: %s: put: %v", tr.name, what, err)
		}
		if err := s.Close(); err != nil {
			tr.t.Errorf("%s: %s: close: %v", tr.name, what, err)
		}
	}
}

// work writes enough for several flushes, and compacts.
func (tr *trial) work(s *pebble.Store, writes int) {
	ctx := context.Background()
	for i := range writes {
		key := fmt.Sprintf("a/%d", i%7)
		before := tr.answered[key]
		if tr.inDoubt[key] {
			return
		}
		r := storage.Record{Key: key, Value: bytes.Repeat(fmt.Appendf(nil, "%04d", i), 2500)}
		var err error
		if i%5 == 4 && before.Revision != 0 {
			r = storage.Record{Key: key}
			_, err = s.Delete(ctx, key, before.Revision)
		} else {
			r.Revision, err = s.Put(ctx, storage.Write{Key: key, Value: r.Value, Expected: before.Revision})
		}
		if err != nil {
			tr.inDoubt[key] = true
			tr.sentence("write", err)
			continue
		}
		tr.answered[key] = r
		tr.lastWrites = [2]replaced{tr.lastWrites[1], {key, before}}
		if current, _ := s.Revision(); i%8 == 7 {
			if err := s.Compact(ctx, current); err != nil {
				tr.sentence("compact", err)
			}
		}
	}
}

// TestFaultUnderConcurrentWriters: whoever waits for a group is answered when it fails, and nothing that was answered
// is lost.
func TestFaultUnderConcurrentWriters(t *testing.T) {
	defer goleak.VerifyNone(t)
	for n := 30; n < 300; n += 30 {
		tr := newTrial(t, faults[0], n)
		s, err := tr.open(tr.fs)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var writers sync.WaitGroup
		tr.within("writing", func() {
			for i := range 8 {
				writers.Go(func() {
					for j := 0; ; j++ {
						w := storage.Write{Key: fmt.Sprintf("a/%d/%d", i, j), Value: bytes.Repeat([]byte{'x'}, 5000)}
						revision, err := s.Put(t.Context(), w)
						mu.Lock()
						if err != nil {
							tr.sentence("write", err)
							mu.Unlock()
							return
						}
						tr.answered[w.Key] = storage.Record{Key: w.Key, Value: w.Value, Revision: revision}
						mu.Unlock()
					}
				})
			}
			writers.Wait()
			tr.check("afterwards", s)
			_ = s.Close() // with the failure, which the writers had
		})
		tr.fs.heal()
		if s, err = tr.open(tr.fs); err != nil {
			t.Fatalf("%s: opened after the fault: %v", tr.name, err)
		}
		tr.check("opened after the fault", s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// sentence holds an error to what a person needs.
func (tr *trial) sentence(what string, err error) {
	tr.t.Helper()
	if !tr.fs.hasFailed() {
		tr.t.Errorf("%s: %s failed, but the disk did not: %v", tr.name, what, err)
	}
	text := err.Error()
	if !errors.Is(err, tr.fs.err) || !strings.Contains(text, "store") || strings.Contains(text, "\n") ||
		strings.Contains(text, "panic") {
		tr.t.Errorf("%s: %s: %q does not say what is wrong", tr.name, what, text)
	}
}

// checkFailed holds a store whose disk has failed to what it promises.
func (tr *trial) checkFailed(s *pebble.Store) {
	if s.Err() == nil {
		return
	}
	failed := (*pebble.FailedError)(nil)
	if !errors.As(s.Err(), &failed) || !errors.Is(s.Err(), pebble.ErrFailed) || failed.Dir != "store" {
		tr.t.Errorf("%s: the store failed with %v", tr.name, s.Err())
	}
	if _, err := s.Put(context.Background(), storage.Write{Key: "a/late", Value: []byte("1")}); !errors.Is(err,
		s.Err()) {
		tr.t.Errorf("%s: a late write: %v", tr.name, err)
	}
	current, _ := s.Revision()
	w, err := s.Watch(context.Background(), "", current)
	if err != nil {
		tr.t.Fatalf("%s: watch: %v", tr.name, err)
	}
	defer w.Close()
	if _, _, err := w.Next(context.Background()); !errors.Is(err, s.Err()) {
		tr.t.Errorf("%s: the watch was told %v", tr.name, err)
	}
	if err := s.Backup(context.Background(), "backup"); !errors.Is(err, s.Err()) {
		tr.t.Errorf("%s: backed up: %v", tr.name, err)
	}
}

// check looks for what was answered.
func (tr *trial) check(when string, s *pebble.Store) {
	for key, want := range tr.answered {
		got, err := s.Get(context.Background(), key)
		switch {
		case tr.inDoubt[key]: // either state
		case want.Revision == 0 && errors.Is(err, storage.ErrNotFound):
		case err != nil || got.Revision != want.Revision || !bytes.Equal(got.Value, want.Value):
			tr.t.Errorf("%s: %s, %s is at revision %d (%v), answered was %d", tr.name, when, key, got.Revision, err,
				want.Revision)
		}
	}
	if _, err := s.List(context.Background(), "", storage.ListOptions{}); err != nil {
		tr.t.Errorf("%s: %s: list: %v", tr.name, when, err)
	}
}

// crowded is a file system in a process with too many open files: the first attempt to open each fails.
type crowded struct {
	vfs.FS
	asked sync.Map // by the operation and the name
}

func (c *crowded) refuses(op, name string) error {
	if _, again := c.asked.LoadOrStore(op+name, true); again || strings.HasSuffix(name, "LOCK") {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: syscall.EMFILE}
}

func (c *crowded) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.refuses("create", name); err != nil {
		return nil, err
	}
	return c.FS.Create(name, category)
}

func (c *crowded) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.refuses("reuse", to); err != nil {
		return nil, err
	}
	return c.FS.ReuseForWrite(from, to, category)
}

func (c *crowded) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	if err := c.refuses("open", name); err != nil {
		return nil, err
	}
	return c.FS.Open(name, options...)
}

func (c *crowded) OpenDir(name string) (vfs.File, error) {
	if err := c.refuses("open", name); err != nil {
		return nil, err
	}
	return c.FS.OpenDir(name)
}

// TestTooManyOpenFiles: a store waits for a file descriptor, and does not take the lack of one for a broken disk.
func TestTooManyOpenFiles(t *testing.T) {
	tr := newTrial(t, fault{name: "no fault"}, 0)
	s, err := tr.open(&crowded{FS: tr.memory})
	if err != nil {
		t.Fatal(err)
	}
	tr.work(s, 24)
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if len(tr.inDoubt) > 0 {
		t.Errorf("writes failed: %v", tr.inDoubt)
	}
	tr.check("afterwards", s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestPermission: somebody who may not write a store is told so, and nothing of what it answered before.
func TestPermission(t *testing.T) {
	err := &pebble.FailedError{Dir: "store", Err: &fs.PathError{Op: "mkdir", Path: "store", Err: syscall.EACCES}}
	if want := "this user may not write the store in store: mkdir store: permission denied"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}
