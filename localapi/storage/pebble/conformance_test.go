package pebble_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// backend gives the suite access to the stores of one kind.
type backend struct {
	// Open returns an empty store, and arranges for it to be closed at the end of the test.
	Open func(t *testing.T) storage.Storage

	// Reopen closes a store that Open or Reopen returned, as the end of its process would, and opens what it left. Nil
	// means that the stores do not outlive their process: the cases about that are skipped.
	Reopen func(t *testing.T, s storage.Storage) storage.Storage

	// Second opens a store for a second time, while it is open, and returns the error. Nil means that this is not
	// possible.
	Second func(t *testing.T, s storage.Storage) error
}

// testBackend tests what every [storage.Storage] has to pass: what the interface promises, the defects that stores are
// known for, and the embedded API on top of the backend.
//
// # The known defects
//
// Stores under a Kubernetes API get the same things wrong again and again. Each of these is a case of [testBackend],
// named Defect and its number; where the fault can be in the layer above the store, the case goes through an API server
// on the backend.
//
//	 1  create and delete do not fill what they answer
//	 2  lists have placeholders instead of data
//	 3  lists of all namespaces are empty
//	 4  lists have the kind of another type
//	 5  patches answer the object as it was
//	 6  an update is a delete and a create: two events, a new identity, no conflict
//	 7  UIDs are made of name and generation: not unique
//	 8  errors are told apart by their text
//	 9  a watch ignores its revision: what happens between list and watch is lost
//	10  a watch starts a goroutine per call
//	11  a slow watcher blocks the store
//	12  watching "a" sees "ab"
//	13  events are out of order under concurrent writers
//	14  a guard is checked before the write: lost updates
//	15  the revision starts again when the store is reopened
//	16  a tenant is a path: two tenants cannot share a store
//	17  a second process damages a store, or fails for a reason that nobody understands
//	18  objects with a time to live stay, or others go (there is none here: nothing expires by itself)
//	19  a manager that records events deadlocks at its start
//	20  events are stored out of order, or dropped
func testBackend(t *testing.T, b backend) {
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
		{"AnyKey", testAnyKey},
		{"ManyVersions", testManyVersions},
		{"WatchFromRevision", testWatch},
		{"WatchNextWaits", testWatchNext},
		{"WatchPrevious", testWatchPrevious},
		{"Compaction", testCompaction},
		{"CompactionKeepsState", testCompactionKeepsState},
		{"CompactionBesideReaders", testCompactionBesideReaders},
		{"ListThenWatchLosesNothing", testListThenWatch},
		{"ConcurrentGuardedUpdates", testConcurrentUpdates},
		{"SlowWatchDelaysNobody", testSlowWatch},
		{"Closed", testClosed},
		{"ClosedUnderWriters", testClosedUnderWriters},
		{"Reopened", testReopened},
		{"ReopenedAfterCompaction", testReopenedAfterCompaction},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newFixture(t, b)) })
	}
	for _, c := range apiCases {
		t.Run(c.name, func(t *testing.T) { c.test(newAPI(t, b)) })
	}
	for _, d := range defects {
		t.Run(fmt.Sprintf("Defect%02d", d.number)+d.name, func(t *testing.T) { d.test(t, newFixture(t, b)) })
	}
	for _, d := range apiDefects {
		t.Run(fmt.Sprintf("Defect%02d", d.number)+d.name, func(t *testing.T) { d.test(newAPI(t, b)) })
	}
}

func newFixture(t *testing.T, b backend) fixture {
	return fixture{t: t, ctx: t.Context(), backend: b, Storage: b.Open(t)}
}

// fixture is a store whose expected operations fail the test if they fail.
type fixture struct {
	t       *testing.T
	ctx     context.Context
	backend backend
	storage.Storage
}

// reopened returns the fixture on what the store left when it was closed.
func (f fixture) reopened() fixture {
	f.t.Helper()
	if f.backend.Reopen == nil {
		f.t.Skip("the stores of this backend live in memory")
	}
	f.Storage = f.backend.Reopen(f.t, f.Storage)
	return f
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

// testAnyKey stores keys that look like the parts of a backend's own encoding.
func testAnyKey(_ *testing.T, f fixture) {
	keys := []string{"a/", "a/\x00", "a/\x00\x01", "a/\x00\xff", "a/b", "a/b\x00c", "a/\xff", "a/\xff\xff"}
	want := []string{}
	for i, key := range keys {
		f.create(key, fmt.Sprint(i))
		want = append(want, fmt.Sprintf("%s=%d", key, i))
	}
	f.equal("list", f.list("a/", storage.ListOptions{}), want)
	f.equal("list of a prefix with a zero", f.list("a/\x00", storage.ListOptions{}), want[1:4])
	f.equal("list from a start with a zero", f.list("a/", storage.ListOptions{Start: "a/b\x00"}), want[5:])
	f.create("b", "next")
	f.equal("list of the last prefix", f.list("a/\xff", storage.ListOptions{}), want[6:])
}

// testManyVersions lists past a key that was written much more often than its neighbours.
func testManyVersions(_ *testing.T, f fixture) {
	f.create("a/a", "1")
	revision := storage.NoRevision
	revisions := []int64{}
	for i := range 50 {
		revision = f.put("a/b", fmt.Sprint(i), revision)
		revisions = append(revisions, revision)
	}
	f.create("a/c", "1")
	f.equal("list", f.list("a/", storage.ListOptions{}), []string{"a/a=1", "a/b=49", "a/c=1"})
	f.equal("list in the middle", f.list("a/", storage.ListOptions{Revision: revisions[20]}),
		[]string{"a/a=1", "a/b=20"})
	page, err := f.List(f.ctx, "a/", storage.ListOptions{Limit: 1})
	f.fails("list", err, nil)
	f.equal("remaining", page.Remaining, int64(2))
}

func storageKey(tenant, resource, namespace, name string) string {
	return storage.Key{Tenant: tenant, Resource: resource, Namespace: namespace, Name: name}.String()
}
