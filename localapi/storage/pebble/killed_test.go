package pebble_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// childDir is the directory that the child process of [runKilled] writes to. If it is not set, the process is the
// parent.
const childDir = "FLYBALL_STORAGE_KILLED_DIR"

const killedKeys = 8

// runKilled kills a process that writes to a store at random moments, rounds times, and opens the store after each.
// Every acknowledged write must be there, whole; everything there must come from the process; revisions must never go
// back. open opens the store in a directory. The calling test is run again as the other process, so it must do nothing
// but call runKilled.
func runKilled(t *testing.T, rounds int, open func(ctx context.Context, dir string) (storage.Storage, error)) {
	t.Helper()
	if dir := os.Getenv(childDir); dir != "" {
		t.Fatal(writeUntilKilled(t.Context(), dir, open))
	}
	dir := t.TempDir()
	k := killed{t: t, keys: map[string]acknowledged{}}
	for round := range rounds {
		k.kill(dir)
		s, err := open(t.Context(), dir)
		if err != nil {
			t.Fatalf("round %d: open: %v", round, err)
		}
		k.check(round, fixture{t: t, ctx: t.Context(), Storage: s})
		if err := s.Close(); err != nil {
			t.Fatalf("round %d: close: %v", round, err)
		}
	}
	t.Logf("%d kills, %d acknowledged writes, revision %d", rounds, k.count, k.last)
}

// writeUntilKilled writes from several goroutines, each to its own key, and prints what was acknowledged. It returns
// only if it fails.
func writeUntilKilled(ctx context.Context, dir string,
	open func(context.Context, string) (storage.Storage, error),
) error {
	s, err := open(ctx, dir)
	if err != nil {
		return err
	}
	failed := make(chan error, killedKeys) // every writer sends at most once
	var out sync.Mutex
	for i := range killedKeys {
		go func() {
			failed <- writeKey(ctx, s, fmt.Sprintf("a/%d", i), func(line string) {
				out.Lock()
				defer out.Unlock()
				fmt.Println(line)
			})
		}()
	}
	return <-failed
}

// writeKey continues with a key where the last process stopped.
func writeKey(ctx context.Context, s storage.Storage, key string, acknowledge func(string)) error {
	n, r, err := 0, storage.Record{}, error(nil)
	if r, err = s.Get(ctx, key); err == nil {
		if n, err = parseValue(r.Value); err != nil {
			return err
		}
	} else if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	for {
		n++
		revision, deleted := int64(0), n%10 == 0 && r.Revision != storage.NoRevision
		if deleted {
			revision, err = s.Delete(ctx, key, r.Revision)
			r.Revision = storage.NoRevision
		} else {
			revision, err = s.Put(ctx, storage.Write{Key: key, Value: formatValue(n), Expected: r.Revision})
			r.Revision = revision
		}
		if err != nil {
			return err
		}
		acknowledge(fmt.Sprintf("ack %s %d %d %t", key, n, revision, deleted))
		if n%50 == 0 {
			if err := s.Compact(ctx, revision); err != nil {
				return err
			}
		}
	}
}

// formatValue returns a value from which one can tell whether it is whole. Some are larger than a block of a disk.
func formatValue(n int) []byte {
	body := bytes.Repeat([]byte{byte('a' + n%26)}, 10+n%7*1000)
	return fmt.Appendf(nil, "%d %d %s", n, crc32.ChecksumIEEE(body), body)
}

func parseValue(value []byte) (n int, err error) {
	var sum uint32
	var body string
	if _, err := fmt.Sscan(string(value), &n, &sum, &body); err != nil {
		return 0, fmt.Errorf("value of %d bytes: %w", len(value), err)
	}
	if !bytes.Equal(value, formatValue(n)) {
		return 0, fmt.Errorf("value %d is damaged", n)
	}
	return n, nil
}

// acknowledged is the last write to a key that its writer knows of.
type acknowledged struct {
	n        int
	revision int64
	deleted  bool
}

// killed is what the parent knows.
type killed struct {
	t     *testing.T
	keys  map[string]acknowledged
	last  int64 // the highest revision ever seen
	count int
}

// kill runs the writer and kills it a while after its first write.
func (k *killed) kill(dir string) {
	k.t.Helper()
	child := exec.CommandContext(k.t.Context(), os.Args[0], "-test.run=^"+k.t.Name()+"$", "-test.count=1")
	child.Env = append(os.Environ(), childDir+"="+dir)
	var stderr bytes.Buffer
	child.Stderr = &stderr
	stdout, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	before, seen := k.last, 0
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var key string
		var a acknowledged
		if _, err := fmt.Sscanf(lines.Text(), "ack %s %d %d %t", &key, &a.n, &a.revision, &a.deleted); err != nil {
			if strings.HasPrefix(lines.Text(), "ack") {
				continue // cut off by the kill
			}
			k.t.Fatalf("the writer says %q, and %s", lines.Text(), &stderr)
		}
		if a.revision <= before || a.revision <= k.keys[key].revision {
			k.t.Errorf("%s acknowledged at revision %d, after %d", key, a.revision, max(before, k.keys[key].revision))
		}
		k.keys[key] = a
		k.last = max(k.last, a.revision)
		k.count++
		if seen++; seen == 1 {
			time.AfterFunc(rand.N(60*time.Millisecond), func() { _ = child.Process.Kill() })
		}
	}
	if err := lines.Err(); err != nil {
		k.t.Errorf("read what the writer says: %v", err)
	}
	if err := child.Wait(); err == nil || seen == 0 {
		k.t.Fatalf("the writer ended by itself after %d writes: %v %s", seen, err, &stderr)
	}
}

// check compares the store with what was acknowledged.
func (k *killed) check(round int, f fixture) {
	k.t.Helper()
	current, compacted := f.Revision()
	if current < k.last {
		k.t.Errorf("round %d: revision %d, but %d was acknowledged", round, current, k.last)
	}
	k.last = current
	for i := range killedKeys {
		key := fmt.Sprintf("a/%d", i)
		a := k.keys[key]
		r, err := f.Get(f.ctx, key)
		n := 0
		if err == nil {
			n, err = parseValue(r.Value)
		}
		switch gone := errors.Is(err, storage.ErrNotFound); {
		case err != nil && !gone:
			k.t.Errorf("round %d: %s: %v", round, key, err)
		case gone && (a.deleted || a.n == 0), !gone && !a.deleted && n == a.n && r.Revision == a.revision:
		case gone && !a.deleted && a.n%10 == 9: // the next write was a deletion
		case !gone && r.Revision > a.revision && n == a.n+1: // the last write, whose answer did not arrive
		default:
			k.t.Errorf("round %d: %s is at %d, revision %d (%v); acknowledged was %+v", round, key, n, r.Revision, err,
				a)
		}
		k.keys[key] = acknowledged{n: n, revision: max(a.revision, r.Revision), deleted: err != nil}
	}
	k.checkHistory(round, f, current, compacted)
}

// checkHistory compares the history with the state. Nothing may be missing from either, nor a revision from the
// history.
func (k *killed) checkHistory(round int, f fixture, current, compacted int64) {
	k.t.Helper()
	state := map[string]string{}
	for _, s := range f.list("", storage.ListOptions{Revision: compacted}) {
		key, value, _ := strings.Cut(s, "=")
		state[key] = value
	}
	events, _, err := f.watch("", compacted).Poll()
	f.fails("read the history", err, nil)
	for i, e := range events {
		if want := max(compacted, storage.FirstRevision) + int64(i) + 1; e.Revision != want {
			k.t.Errorf("round %d: revision %d in the place of %d", round, e.Revision, want)
		}
		if delete(state, e.Key); !e.Deleted {
			state[e.Key] = string(e.Value)
		}
	}
	now := map[string]string{}
	for _, s := range f.list("", storage.ListOptions{}) {
		key, value, _ := strings.Cut(s, "=")
		now[key] = value
	}
	f.equal("state by its history", state, now)
	f.equal("writes in the history", int64(len(events)), current-max(compacted, storage.FirstRevision))
}
