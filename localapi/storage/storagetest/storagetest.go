package storagetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// Run tests the stores that open makes. Each subtest opens one empty store; open arranges for it to be closed.
func Run(t *testing.T, open func(t *testing.T) storage.Storage) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, fixture)
	}{
		{"CreateGetUpdateDelete", testCreateGetUpdateDelete},
		{"Guards", testGuards},
		{"RevisionsRiseByOne", testRevisions},
		{"ListPrefix", testListPrefix},
		{"ListPages", testListPages},
		{"ListAtRevision", testListAtRevision},
		{"WatchFromRevision", testWatch},
		{"WatchNextWaits", testWatchNext},
		{"WatchPrevious", testWatchPrevious},
		{"Compaction", testCompaction},
		{"CompactionKeepsState", testCompactionKeepsState},
		{"ListThenWatchLosesNothing", testListThenWatch},
		{"ConcurrentGuardedUpdates", testConcurrentUpdates},
		{"SlowWatchDelaysNobody", testSlowWatch},
		{"Closed", testClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, fixture{t: t, ctx: t.Context(), Storage: open(t)})
		})
	}
}

// fixture is a store whose expected operations fail the test if they fail.
type fixture struct {
	t   *testing.T
	ctx context.Context
	storage.Storage
}

func (f fixture) put(key, value string, expected int64) int64 {
	f.t.Helper()
	revision, err := f.Put(f.ctx, storage.Write{Key: key, Value: []byte(value), Expected: expected})
	if err != nil {
		f.t.Fatalf("put %s: %v", key, err)
	}
	return revision
}

func (f fixture) create(key, value string) int64 {
	f.t.Helper()
	return f.put(key, value, storage.NoRevision)
}

func (f fixture) remove(key string, expected int64) int64 {
	f.t.Helper()
	revision, err := f.Delete(f.ctx, key, expected)
	if err != nil {
		f.t.Fatalf("delete %s: %v", key, err)
	}
	return revision
}

// list returns a list as "key=value" strings.
func (f fixture) list(prefix string, o storage.ListOptions) []string {
	f.t.Helper()
	page, err := f.List(f.ctx, prefix, o)
	if err != nil {
		f.t.Fatalf("list %s %+v: %v", prefix, o, err)
	}
	got := []string{}
	for _, r := range page.Records {
		got = append(got, r.Key+"="+string(r.Value))
	}
	return got
}

func (f fixture) watch(prefix string, after int64) storage.Watch {
	f.t.Helper()
	w, err := f.Watch(f.ctx, prefix, after)
	if err != nil {
		f.t.Fatalf("watch %s after %d: %v", prefix, after, err)
	}
	f.t.Cleanup(w.Close)
	return w
}

// poll returns what a watch has as "revision key=value" strings, with "-" for a deletion's value.
func (f fixture) poll(w storage.Watch) []string {
	f.t.Helper()
	events, _, err := w.Poll()
	if err != nil {
		f.t.Fatalf("poll: %v", err)
	}
	return describe(events)
}

func describe(events []storage.Event) []string {
	got := []string{}
	for _, e := range events {
		value := string(e.Value)
		if e.Deleted {
			value = "-"
		}
		got = append(got, fmt.Sprintf("%d %s=%s", e.Revision, e.Key, value))
	}
	return got
}

func (f fixture) equal(what string, got, want any) {
	f.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func (f fixture) fails(what string, err, want error) {
	f.t.Helper()
	if !errors.Is(err, want) {
		f.t.Fatalf("%s: error is %v, want %v", what, err, want)
	}
}

func testCreateGetUpdateDelete(_ *testing.T, f fixture) {
	first := f.create("a/x", "1")
	r, err := f.Get(f.ctx, "a/x")
	f.fails("get", err, nil)
	f.equal("created record", []any{r.Key, string(r.Value), r.Revision}, []any{"a/x", "1", first})
	second := f.put("a/x", "2", first)
	r, err = f.Get(f.ctx, "a/x")
	f.fails("get", err, nil)
	f.equal("updated record", []any{string(r.Value), r.Revision}, []any{"2", second})
	f.remove("a/x", second)
	_, err = f.Get(f.ctx, "a/x")
	f.fails("get after delete", err, storage.ErrNotFound)
	f.create("a/x", "3")
	f.equal("recreated", f.list("a/", storage.ListOptions{}), []string{"a/x=3"})
}

func testGuards(_ *testing.T, f fixture) {
	first := f.create("a/x", "1")
	put := func(key string, expected int64) error {
		_, err := f.Put(f.ctx, storage.Write{Key: key, Value: []byte("new"), Expected: expected})
		return err
	}
	f.fails("create of an existing key", put("a/x", storage.NoRevision), storage.ErrConflict)
	f.fails("update of a missing key", put("a/y", first), storage.ErrConflict)
	second := f.put("a/x", "2", first)
	f.fails("update from an old revision", put("a/x", first), storage.ErrConflict)
	_, err := f.Delete(f.ctx, "a/x", first)
	f.fails("delete from an old revision", err, storage.ErrConflict)
	_, err = f.Delete(f.ctx, "a/y", first)
	f.fails("delete of a missing key", err, storage.ErrNotFound)
	f.remove("a/x", second)
	f.fails("update of a deleted key", put("a/x", second), storage.ErrConflict)
	current, _ := f.Revision()
	f.equal("refused writes take no revision", current, second+1)
}

func testRevisions(_ *testing.T, f fixture) {
	current, compacted := f.Revision()
	f.equal("fresh store", []int64{current, compacted}, []int64{storage.FirstRevision, 0})
	first := f.create("a/x", "1")
	f.equal("first write", first, storage.FirstRevision+1)
	f.equal("second write", f.create("b/y", "1"), first+1)
	f.equal("third write", f.remove("a/x", first), first+2)
	page, err := f.List(f.ctx, "c/", storage.ListOptions{})
	f.fails("list", err, nil)
	f.equal("revision of an empty list", page.Revision, first+2)
}

func testListPrefix(_ *testing.T, f fixture) {
	for _, key := range []string{"a/x", "ab/x", "a/b/c", "a-b/x", "b/x"} {
		f.create(key, "v")
	}
	f.equal("tenant a", f.list("a/", storage.ListOptions{}), []string{"a/b/c=v", "a/x=v"})
	f.equal("tenant ab", f.list("ab/", storage.ListOptions{}), []string{"ab/x=v"})
	f.equal("everything", f.list("", storage.ListOptions{}), []string{"a-b/x=v", "a/b/c=v", "a/x=v", "ab/x=v", "b/x=v"})
}

func testListPages(_ *testing.T, f fixture) {
	for i := range 5 {
		f.create(fmt.Sprintf("a/%d", i), "v")
	}
	f.create("b/0", "v")
	first, err := f.List(f.ctx, "a/", storage.ListOptions{Limit: 2})
	f.fails("list", err, nil)
	f.equal("first page", []any{len(first.Records), first.Records[1].Key, first.Remaining}, []any{2, "a/1", int64(3)})
	last := storage.ListOptions{Limit: 3, Start: first.Records[1].Key + "\x00", Revision: first.Revision}
	f.equal("second page", f.list("a/", last), []string{"a/2=v", "a/3=v", "a/4=v"})
	f.equal("a start before the prefix", len(f.list("b/", storage.ListOptions{Start: "a/3"})), 1)
}

func testListAtRevision(_ *testing.T, f fixture) {
	x1 := f.create("a/x", "1")
	y1 := f.create("a/y", "1")
	x2 := f.put("a/x", "2", x1)
	gone := f.remove("a/y", y1)
	z1 := f.create("a/y", "again")
	for _, c := range []struct {
		revision int64
		want     []string
	}{
		{storage.FirstRevision, []string{}},
		{x1, []string{"a/x=1"}},
		{y1, []string{"a/x=1", "a/y=1"}},
		{x2, []string{"a/x=2", "a/y=1"}},
		{gone, []string{"a/x=2"}},
		{z1, []string{"a/x=2", "a/y=again"}},
		{0, []string{"a/x=2", "a/y=again"}},
	} {
		f.equal(fmt.Sprintf("list at %d", c.revision), f.list("a/", storage.ListOptions{Revision: c.revision}), c.want)
	}
	_, err := f.List(f.ctx, "a/", storage.ListOptions{Revision: z1 + 1})
	f.fails("list in the future", err, storage.ErrFuture)
}

func testWatch(_ *testing.T, f fixture) {
	x := f.create("a/x", "1")
	fromStart, fromX := f.watch("a/", storage.FirstRevision), f.watch("a/", x)
	f.create("ab/x", "1")
	x2 := f.put("a/x", "2", x)
	gone := f.remove("a/x", x2)
	first := fmt.Sprintf("%d a/x=1", x)
	rest := []string{fmt.Sprintf("%d a/x=2", x2), fmt.Sprintf("%d a/x=-", gone)}
	f.equal("from the start", f.poll(fromStart), append([]string{first}, rest...))
	f.equal("from x", f.poll(fromX), rest)
	f.equal("nothing twice", f.poll(fromX), []string{})
	f.create("a/z", "1")
	events, revision, err := fromX.Poll()
	f.fails("poll", err, nil)
	f.equal("later", describe(events), []string{fmt.Sprintf("%d a/z=1", gone+1)})
	f.equal("revision of the poll", revision, gone+1)
	_, err = f.Watch(f.ctx, "a/", gone+9)
	f.fails("watch from the future", err, storage.ErrFuture)
}

func testWatchNext(t *testing.T, f fixture) {
	w := f.watch("a/", storage.FirstRevision)
	got := make(chan []storage.Event, 1)
	go func() {
		events, _, err := w.Next(f.ctx)
		if err != nil {
			t.Errorf("next: %v", err)
		}
		got <- events
	}()
	f.create("b/x", "not this one")
	f.create("a/x", "1")
	f.equal("next", describe(<-got), []string{"3 a/x=1"})
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, _, err := w.Next(ctx)
	f.fails("next with a cancelled context", err, context.Canceled)
}

func testWatchPrevious(_ *testing.T, f fixture) {
	w := f.watch("", storage.FirstRevision)
	x := f.create("a/x", "1")
	x2 := f.put("a/x", "2", x)
	f.remove("a/x", x2)
	f.create("a/x", "3")
	events, _, err := w.Poll()
	f.fails("poll", err, nil)
	var previous []string
	for _, e := range events {
		previous = append(previous, fmt.Sprintf("%d %s", e.Previous.Revision, e.Previous.Value))
	}
	f.equal("previous states", previous, []string{"0 ", fmt.Sprintf("%d 1", x), fmt.Sprintf("%d 2", x2), "0 "})
}

func testCompaction(_ *testing.T, f fixture) {
	x := f.create("a/x", "1")
	late := f.watch("a/", storage.FirstRevision)
	x2 := f.put("a/x", "2", x)
	x3 := f.put("a/x", "3", x2)
	f.fails("compact", f.Compact(f.ctx, x2), nil)
	f.fails("compact again", f.Compact(f.ctx, x), nil)
	_, compacted := f.Revision()
	f.equal("compacted revision", compacted, x2)
	_, err := f.List(f.ctx, "a/", storage.ListOptions{Revision: x})
	f.fails("list before the compaction", err, storage.ErrCompacted)
	_, err = f.Watch(f.ctx, "a/", x)
	f.fails("watch from before the compaction", err, storage.ErrCompacted)
	_, _, err = late.Poll()
	f.fails("poll of a watch that the compaction overtook", err, storage.ErrCompacted)
	f.equal("list at the compaction", f.list("a/", storage.ListOptions{Revision: x2}), []string{"a/x=2"})
	f.equal("watch from the compaction", f.poll(f.watch("a/", x2)), []string{fmt.Sprintf("%d a/x=3", x3)})
	f.fails("compact the future", f.Compact(f.ctx, x3+1), storage.ErrFuture)
}

func testCompactionKeepsState(_ *testing.T, f fixture) {
	var want []string
	for i := range 50 {
		key := fmt.Sprintf("a/%02d", i)
		revision := f.create(key, "old")
		switch i % 3 {
		case 0:
			f.remove(key, revision)
		case 1:
			f.put(key, "new", revision)
			want = append(want, key+"=new")
		default:
			want = append(want, key+"=old")
		}
		if i%10 == 0 {
			current, _ := f.Revision()
			f.fails("compact", f.Compact(f.ctx, current), nil)
		}
	}
	current, _ := f.Revision()
	f.fails("compact", f.Compact(f.ctx, current), nil)
	f.equal("state", f.list("a/", storage.ListOptions{}), want)
	f.create("a/00", "again")
	r, err := f.Get(f.ctx, "a/00")
	f.fails("get", err, nil)
	f.equal("a key that was compacted away", string(r.Value), "again")
}
