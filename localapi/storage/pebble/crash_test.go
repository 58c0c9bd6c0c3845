package pebble_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/pebble"
)

// TestKilled kills a process with the store on a real disk; FLYBALL_KILLS says how often.
func TestKilled(t *testing.T) {
	rounds := 3
	if text := os.Getenv("FLYBALL_KILLS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	runKilled(t, rounds, func(ctx context.Context, dir string) (storage.Storage, error) {
		return pebble.Open(ctx, dir, pebble.Options{})
	})
}

// TestPowerFailure takes away what was not flushed to the disk, in the middle of concurrent writes: what was
// acknowledged is there. (A killed process, unlike a machine without power, leaves what it gave to the operating
// system.)
func TestPowerFailure(t *testing.T) {
	const writers, failures = 8, 20
	fs := vfs.NewCrashableMem()
	ctx := t.Context()
	for failure := range failures {
		s, err := pebble.Open(ctx, "store", pebble.OnFS(pebble.Options{}, fs))
		if err != nil {
			t.Fatalf("after %d failures: %v", failure, err)
		}
		var mu sync.Mutex
		acknowledged := map[string]int64{}
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				for n := 0; ; n++ {
					key := fmt.Sprintf("a/%d/%d/%d", failure, i, n)
					revision, err := s.Put(ctx, storage.Write{Key: key, Value: []byte(key)})
					if errors.Is(err, storage.ErrClosed) {
						return
					}
					mu.Lock()
					acknowledged[key] = revision
					mu.Unlock()
				}
			})
		}
		for enough := false; !enough; {
			mu.Lock()
			enough = len(acknowledged) >= 10*(failure+1)
			mu.Unlock()
		}
		mu.Lock()
		expected := make(map[string]int64, len(acknowledged))
		for key, revision := range acknowledged {
			expected[key] = revision
		}
		mu.Unlock()
		after := fs.CrashClone(vfs.CrashCloneCfg{})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		fs = after
		checkSurvived(t, fs, expected)
	}
}

func checkSurvived(t *testing.T, fs vfs.FS, expected map[string]int64) {
	t.Helper()
	s, err := pebble.Open(t.Context(), "store", pebble.OnFS(pebble.Options{}, fs))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for key, revision := range expected {
		r, err := s.Get(t.Context(), key)
		if err != nil || r.Revision != revision || string(r.Value) != key {
			t.Errorf("%s, acknowledged at %d: %+v, %v", key, revision, r, err)
		}
	}
}

// TestBackup copies a store under writers: the copy is a state that the store was in.
func TestBackup(t *testing.T) {
	const writers, writes = 4, 100
	ctx := t.Context()
	s, err := pebble.Open(ctx, t.TempDir(), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Put(ctx, storage.Write{Key: "a/before", Value: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range writes {
				if _, err := s.Put(ctx,
					storage.Write{Key: fmt.Sprintf("a/%d/%03d", i, n), Value: []byte("v")}); err != nil {
					t.Errorf("put: %v", err)
				}
			}
		})
	}
	to := filepath.Join(t.TempDir(), "backup")
	before, _ := s.Revision()
	if err := s.Backup(ctx, to); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := s.Backup(ctx, to); err == nil {
		t.Error("backed up over a backup")
	}
	b, err := pebble.Open(ctx, to, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	revision, _ := b.Revision()
	if revision < before {
		t.Errorf("the copy is at revision %d, the store was at %d", revision, before)
	}
	want, err := s.List(ctx, "", storage.ListOptions{Revision: revision})
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.List(ctx, "", storage.ListOptions{})
	if err != nil || len(got.Records) != len(want.Records) || len(got.Records) == 0 {
		t.Fatalf("the copy has %d records, the store had %d at revision %d (%v)", len(got.Records), len(want.Records),
			revision, err)
	}
	for i, r := range got.Records {
		if w := want.Records[i]; r.Key != w.Key || r.Revision != w.Revision {
			t.Errorf("the copy has %s at %d, the store had %s at %d", r.Key, r.Revision, w.Key, w.Revision)
		}
	}
}
