package pebble_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
	"github.com/flyball-dev/flyball/localapi/storage/pebble"
)

// disk opens stores for the suite and knows where each one is.
type disk struct {
	fs   func() vfs.FS
	dirs map[storage.Storage]place
}

type place struct {
	fs  vfs.FS
	dir string
}

func (d disk) open(t *testing.T, p place) *pebble.Store {
	t.Helper()
	// Few recent writes, so that watches read from the disk, too.
	s, err := pebble.Open(t.Context(), p.dir, pebble.OnFS(pebble.Options{RecentWrites: 20}, p.fs))
	if err != nil {
		t.Fatal(err)
	}
	d.dirs[s] = p
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func onDisk(fs func() vfs.FS) backend {
	d := disk{fs: fs, dirs: map[storage.Storage]place{}}
	return backend{
		Open: func(t *testing.T) storage.Storage { return d.open(t, place{d.fs(), t.TempDir()}) },
		Reopen: func(t *testing.T, s storage.Storage) storage.Storage {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return d.open(t, d.dirs[s])
		},
		Second: func(t *testing.T, s storage.Storage) error {
			p := d.dirs[s]
			second, err := pebble.Open(t.Context(), p.dir, pebble.OnFS(pebble.Options{}, p.fs))
			if err == nil {
				_ = second.Close()
			}
			return err
		},
	}
}

// inMemory is the other backend. It is tested here because the suite is in the test package of one of the two: no other
// test binary links pebble for it.
var inMemory = backend{Open: func(t *testing.T) storage.Storage {
	s := memory.New()
	t.Cleanup(func() { _ = s.Close() })
	return s
}}

// TestConformance runs on memory, and on files in memory: what is tested is our code, not the patience of a disk.
func TestConformance(t *testing.T) {
	t.Run("memory", func(t *testing.T) { testBackend(t, inMemory) })
	t.Run("pebble", func(t *testing.T) { testBackend(t, onDisk(func() vfs.FS { return vfs.NewMem() })) })
}

// TestInUse is about real locks and a real OWNER.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	s, err := pebble.Open(t.Context(), dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pebble.Open(t.Context(), dir, pebble.Options{})
	inUse := (*pebble.InUseError)(nil)
	if !errors.As(err, &inUse) || !errors.Is(err, pebble.ErrInUse) || inUse.Owner != os.Getpid() ||
		!strings.Contains(err.Error(), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("opened twice: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = pebble.Open(t.Context(), dir, pebble.Options{}); err != nil {
		t.Fatalf("open what was closed: %v", err)
	}
	_ = s.Close()
}

func TestForeignDirectories(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pebble.Open(t.Context(), dir, pebble.Options{}); err == nil ||
		!strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("opened a directory with files of others: %v", err)
	}
	file := filepath.Join(dir, "thesis.txt")
	if _, err := pebble.Open(t.Context(), file, pebble.Options{}); err == nil {
		t.Error("opened a file")
	}
}

func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "store-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := pebble.Open(ctx, dir, pebble.Options{})
	if err != nil {
		panic(err)
	}
	revision, err := s.Put(ctx, storage.Write{Key: "default/core/configmaps/ns/a", Value: []byte("1")})
	fmt.Println(revision, err, s.Close())

	s, err = pebble.Open(ctx, dir, pebble.Options{}) // as another process would
	if err != nil {
		panic(err)
	}
	defer s.Close()
	r, err := s.Get(ctx, "default/core/configmaps/ns/a")
	fmt.Println(string(r.Value), r.Revision, err)
	// Output:
	// 2 <nil> <nil>
	// 1 2 <nil>
}

// TestRecentWritesAreBoundedInBytes: the store keeps 4,096 recent writes only if they are small. Watches read the
// others from disk.
func TestRecentWritesAreBoundedInBytes(t *testing.T) {
	heap := func() int {
		runtime.GC()
		runtime.GC() // what pools have let go at the first
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	s, err := pebble.Open(t.Context(), t.TempDir(), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before, revision := heap(), int64(storage.NoRevision)
	const writes, size = 150, 1_000_000
	for n := range writes {
		w := storage.Write{Key: "a", Value: bytes.Repeat([]byte{byte(n)}, size), Expected: revision}
		if revision, err = s.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 100<<20 {
		t.Errorf("%d writes of %d bytes hold %d MB, want at most 100", writes, size, grown>>20)
	}
	w, err := s.Watch(t.Context(), "", storage.FirstRevision)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	events, _, err := w.Poll()
	if err != nil || len(events) != writes {
		t.Fatalf("the watch got %d events, want %d: %v", len(events), writes, err)
	}
	for n, e := range events {
		if len(e.Value) != size || e.Value[0] != byte(n) {
			t.Errorf("event %d has another value", n)
		}
	}
}

// TestFilesArePrivate: in a directory that others may read, they may read no file of the store, not even one that was
// there before.
func TestFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	for round := range 2 {
		s, err := pebble.Open(klog.NewContext(t.Context(), log), dir, pebble.Options{})
		if err != nil {
			t.Fatal(err)
		}
		backup := filepath.Join(t.TempDir(), "backup")
		_, err = s.Put(t.Context(), storage.Write{Key: fmt.Sprint("a", round), Value: []byte("secret")})
		if err := errors.Join(err, s.Backup(t.Context(), backup)); err != nil {
			t.Fatal(err)
		}
		for _, where := range []string{dir, backup} {
			files, err := os.ReadDir(where)
			if err != nil || len(files) < 3 {
				t.Fatalf("%d files, %v", len(files), err)
			}
			for _, f := range files {
				if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("round %d: %s has mode %v, %v", round, f.Name(), info.Mode().Perm(), err)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files { // as an older version left them
			if err := os.Chmod(filepath.Join(dir, f.Name()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := strings.Join(lines, "\n")
	if strings.Count(text, "chmod 700") != 2 || !strings.Contains(text, "rwxr-xr-x") {
		t.Errorf("the mode of the directory was not reported at each start:\n%s", text)
	}
}
