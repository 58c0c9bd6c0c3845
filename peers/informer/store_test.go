package informer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// The contracts of cache.Store and cache.Indexer. Source: k8s.io/client-go/tools/cache v0.37.2, store.go, index.go and
// thread_safe_store.go.

func TestIndexer(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "label": byLabel})
		if l := x.List(); l == nil || len(l) != 0 {
			t.Errorf("empty List is %#v", l)
		}
		must(t, x.Add(pod("a", "one", "1", "red", "big")))
		must(t, x.Add(pod("b", "two", "2", "red")))
		must(t, x.Add(pod("b", "three", "3", "blue")))
		must(t, x.Update(pod("b", "three", "4", "blue", "red")))
		equal(t, "List", names(x.List()), []string{"one", "three", "two"})
		equal(t, "ListKeys", sorted(x.ListKeys()), []string{"a/one", "b/three", "b/two"})
		red, err := x.ByIndex("label", "red")
		must(t, err)
		equal(t, "ByIndex", names(red), []string{"one", "three", "two"})
		redKeys, err := x.IndexKeys("label", "red")
		must(t, err)
		equal(t, "IndexKeys are sorted", redKeys, []string{"a/one", "b/three", "b/two"})
		like, err := x.Index("label", pod("", "", "", "big", "blue", "red"))
		must(t, err)
		equal(t, "Index of several values", names(like), []string{"one", "three", "two"})
		none, err := x.Index("label", pod("", "", ""))
		must(t, err)
		equal(t, "Index of no value", names(none), []string{})
		inB, err := x.Index(cache.NamespaceIndex, &metav1.ObjectMeta{Namespace: "b"})
		must(t, err)
		equal(t, "Index by an ObjectMeta", names(inB), []string{"three", "two"})
		equal(t, "ListIndexFuncValues", sorted(x.ListIndexFuncValues("label")), []string{"big", "blue", "red"})
		got, exists, err := x.Get(pod("b", "three", ""))
		if !exists || err != nil || got.(*corev1.Pod).ResourceVersion != "4" {
			t.Errorf("Get: %v %v %v", got, exists, err)
		}
		if got, exists, err := x.GetByKey("c/none"); got != nil || exists || err != nil {
			t.Errorf("GetByKey of nothing: %v %v %v", got, exists, err)
		}
	})
}

func TestIndexerDeletesAndReplaces(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{"label": byLabel})
		for _, p := range []*corev1.Pod{
			pod("a", "one", "1", "red", "big"), pod("b", "two", "2", "red"),
			pod("b", "three", "3"),
		} {
			must(t, x.Add(p))
		}
		must(t, x.Delete(cache.DeletedFinalStateUnknown{Key: "a/one"}))
		must(t, x.Delete(cache.ExplicitKey("b/three")))
		must(t, x.Delete(pod("b", "two", "9")))
		must(t, x.Delete(pod("b", "two", "9")))
		must(t, x.Delete(cache.DeletedFinalStateUnknown{Key: "c/none"}))
		equal(t, "all gone", names(x.List()), []string{})
		equal(t, "values without objects", x.ListIndexFuncValues("label"), []string{})
		if big, err := x.ByIndex("label", "big"); err != nil || len(big) != 0 {
			t.Errorf("deleted object in index: %v %v", big, err)
		}
		must(t, x.Replace([]any{pod("c", "four", "20", "red"), pod("c", "five", "19")}, "21"))
		must(t, x.Replace([]any{pod("c", "four", "20", "red"), pod("c", "six", "19")}, "21"))
		equal(t, "after Replace", names(x.List()), []string{"four", "six"})
		red, _ := x.ByIndex("label", "red")
		equal(t, "index after Replace", names(red), []string{"four"})
		must(t, x.Resync())
		must(t, x.Replace(nil, "22"))
		equal(t, "after Replace by nothing", names(x.List()), []string{})
	})
}

// TestStoreTakesWhatItIsGiven: a store is not an informer. What is written is kept, whatever its version.
func TestStoreTakesWhatItIsGiven(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newStore(cache.MetaNamespaceKeyFunc)
		for _, rv := range []string{"5", "5", "3", ""} {
			p := pod("a", "one", rv)
			must(t, x.Add(p))
			if got, _, _ := x.GetByKey("a/one"); got != any(p) {
				t.Errorf("version %q was not taken", rv)
			}
		}
		other := pod("a", "one", "1")
		other.UID = "other"
		must(t, x.Update(other))
		if got, _, _ := x.GetByKey("a/one"); got != any(other) {
			t.Error("another UID was not taken")
		}
		same := pod("a", "one", "1")
		must(t, x.Replace([]any{same}, "1"))
		if got, _, _ := x.GetByKey("a/one"); got != any(same) {
			t.Error("Replace did not take the same version")
		}
	})
}

func TestStoreErrors(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"label": byLabel})
		for what, err := range map[string]error{
			"Add": x.Add("no metadata"), "Update": x.Update("no metadata"), "Delete": x.Delete("no metadata"),
			"Replace": x.Replace([]any{"no metadata"}, ""),
		} {
			if key := (cache.KeyError{}); !errors.As(err, &key) || key.Obj != any("no metadata") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, _, err := x.Get("no metadata"); !errors.As(err, &cache.KeyError{}) {
			t.Errorf("Get of what has no key: %v", err)
		}
		_, err := x.ByIndex("none", "x")
		_, err2 := x.IndexKeys("none", "x")
		_, err3 := x.Index("none", pod("a", "b", ""))
		for _, err := range []error{err, err2, err3} {
			if err == nil || err.Error() != "Index with name none does not exist" {
				t.Errorf("unknown index: %v", err)
			}
		}
		equal(t, "values of an unknown index", x.ListIndexFuncValues("none"), []string{})
	})
}

func TestAddIndexersToAFilledStore(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		must(t, x.Add(pod("a", "one", "1", "red")))
		must(t, x.AddIndexers(cache.Indexers{"label": byLabel}))
		red, err := x.ByIndex("label", "red")
		must(t, err)
		equal(t, "new index", names(red), []string{"one"})
		if x.AddIndexers(cache.Indexers{"label": byLabel, "another": byLabel}) == nil {
			t.Error("a name was taken twice")
		}
		if len(x.GetIndexers()) != 1 || x.GetIndexers()["label"] == nil {
			t.Errorf("GetIndexers: %v", x.GetIndexers())
		}
		plain := s.newIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		if plain.GetIndexers() == nil {
			t.Error("GetIndexers is nil")
		}
	})
}

// TestStoreOfAnything: objects need no metadata, only a key.
func TestStoreOfAnything(t *testing.T) {
	type thing struct{ id, value string }
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(func(obj any) (string, error) { return obj.(thing).id, nil }, cache.Indexers{
			"value": func(obj any) ([]string, error) { return []string{obj.(thing).value}, nil },
		})
		must(t, x.Add(thing{"a", "1"}))
		must(t, x.Add(thing{"b", "1"}))
		must(t, x.Update(thing{"b", "2"}))
		objs, err := x.ByIndex("value", "1")
		must(t, err)
		if len(objs) != 1 || objs[0] != (thing{"a", "1"}) {
			t.Errorf("ByIndex: %v", objs)
		}
		x.Bookmark("7")
		if v := x.LastStoreSyncResourceVersion(); v != "7" {
			t.Errorf("version %q", v)
		}
	})
}

func TestStoreResourceVersion(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
		at := func(what, want string) {
			t.Helper()
			if got := x.LastStoreSyncResourceVersion(); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		at("new", "")
		must(t, x.Add(pod("a", "one", "5")))
		at("add", "5")
		must(t, x.Update(pod("a", "one", "8")))
		at("update", "8")
		must(t, x.Delete(cache.DeletedFinalStateUnknown{Key: "a/one"}))
		at("tombstone", "8")
		must(t, x.Delete(pod("a", "gone", "9")))
		at("deletion of what is not there", "9")
		x.Bookmark("11")
		at("bookmark", "11")
		must(t, x.Replace([]any{pod("a", "one", "3")}, "20"))
		at("replace", "20")
		must(t, x.Replace([]any{pod("a", "one", "3")}, "4"))
		at("replace by an earlier list", "4")
	})
}

// TestStoreTransaction: all that can be written is, in one step.
func TestStoreTransaction(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{"label": byLabel})
		must(t, x.Add(pod("a", "gone", "1", "red")))
		txns := x.(cache.TransactionStore)
		err := txns.Transaction(
			cache.Transaction{Type: cache.TransactionTypeAdd, Object: pod("a", "one", "2", "red")},
			cache.Transaction{Type: cache.TransactionTypeAdd, Object: "no metadata"},
			cache.Transaction{Type: cache.TransactionTypeUpdate, Object: pod("a", "one", "3", "blue")},
			cache.Transaction{Type: cache.TransactionTypeDelete, Object: pod("a", "gone", "4")},
		)
		if err == nil || err.TotalTransactions != 4 || len(err.Errors) != 1 ||
			!slices.Equal(err.SuccessfulIndices, []int{0, 2, 3}) {
			t.Fatalf("%#v", err)
		}
		equal(t, "keys", x.ListKeys(), []string{"a/one"})
		equal(t, "index", x.ListIndexFuncValues("label"), []string{"blue"})
		if v := x.LastStoreSyncResourceVersion(); v != "4" {
			t.Errorf("version %q", v)
		}
		if err := txns.Transaction(
			cache.Transaction{Type: cache.TransactionTypeDelete, Object: cache.DeletedFinalStateUnknown{Key: "a/one"}},
		); err != nil {
			t.Error(err)
		}
		if err := txns.Transaction(); err != nil || len(x.List()) != 0 {
			t.Errorf("%v, left %v", err, x.ListKeys())
		}
	})
}

// TestStoreSlicesAreTheReaders: the result of a read belongs to the reader. It never changes, and changing it does not
// affect the store.
func TestStoreSlicesAreTheReaders(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"label": byLabel})
		must(t, x.Add(pod("a", "one", "", "red")))
		must(t, x.Add(pod("a", "two", "", "red")))
		listed := x.List()
		red, err := x.ByIndex("label", "red")
		must(t, err)
		must(t, x.Delete(pod("a", "one", "")))
		equal(t, "List of before", names(listed), []string{"one", "two"})
		equal(t, "ByIndex of before", names(red), []string{"one", "two"})
		again := x.List()
		again[0] = nil
		equal(t, "List after a write to its result", names(x.List()), []string{"two"})
	})
}

// TestStoreConcurrently: every method, from many goroutines. The race detector asserts.
func TestStoreConcurrently(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		x := s.newIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"label": byLabel})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 100 {
					p := pod("a", fmt.Sprint(i%10), fmt.Sprint(i), "red")
					_ = x.Add(p)
					_ = x.Update(p)
					_, _ = x.ByIndex("label", "red")
					_, _ = x.IndexKeys("label", "red")
					_, _ = x.Index("label", p)
					_, _, _ = x.Get(p)
					x.List()
					x.ListKeys()
					x.ListIndexFuncValues("label")
					x.LastStoreSyncResourceVersion()
					x.Bookmark(fmt.Sprint(g))
					_ = x.Delete(p)
				}
			})
		}
		wg.Wait()
		equal(t, "left", x.ListKeys(), []string{})
	})
}
