package bench

import (
	"iter"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/indexer"
)

// The indexed cache of the benchmarks: that many objects, of which each value of the index "group" finds 200, and the
// one value of "all" all.
const (
	indexed   = 100_000
	groupSize = 200
)

func indexedPod(i, version int) *corev1.Pod {
	group := strconv.Itoa(i % (indexed / groupSize))
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "namespace-" + group, Name: "name-" + strconv.Itoa(i), UID: "u",
		ResourceVersion: strconv.Itoa(version),
		Labels:          map[string]string{"group": group, "all": "yes"},
	}}
}

// indexes are the indexes besides the one by namespace. They index labels.
var indexes = []string{"group", "all"}

var flyballIndexer = sync.OnceValue(func() *indexer.Indexer[*corev1.Pod] {
	x := indexer.New[*corev1.Pod](nil, indexer.Options{})
	for _, name := range indexes {
		byLabel := func(p *corev1.Pod) ([]string, error) { return []string{p.Labels[name]}, nil }
		if err := x.AddIndex(name, byLabel); err != nil {
			panic(err)
		}
	}
	all := deltafifo.Delta[*corev1.Pod]{Type: deltafifo.Replace, ResourceVersion: "1"}
	for i := range indexed {
		all.Objects = append(all.Objects, indexedPod(i, 1))
	}
	if _, err := x.Apply([]deltafifo.Delta[*corev1.Pod]{all}); err != nil {
		panic(err)
	}
	return x
})

var clientGoIndexer = sync.OnceValue(func() cache.Indexer {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	for _, name := range indexes {
		indexers[name] = func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Labels[name]}, nil }
	}
	x := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	for i := range indexed {
		if err := x.Add(indexedPod(i, 1)); err != nil {
			panic(err)
		}
	}
	return x
})

// states are two states of each of 10,000 objects, in turns: an update replaces one object by another, as it does in an
// informer.
var states = sync.OnceValue(func() []*corev1.Pod {
	all := make([]*corev1.Pod, 20_000)
	for i := range all {
		all[i] = indexedPod(i%10_000, i+2)
	}
	return all
})

func state(i int) *corev1.Pod { return states()[i%len(states())] }

func group(i int) string { return strconv.Itoa(i % (indexed / groupSize)) }

// found counts what the reads return, so that no read can be left out.
var found int

func count[T any](objs iter.Seq[T]) {
	for range objs {
		found++
	}
}

// BenchmarkIndex reads and writes a cache of 100,000 objects with two indexes besides the namespace.
func BenchmarkIndex(b *testing.B) {
	selector := labels.SelectorFromSet(labels.Set{"group": "7"})
	theirs, ours := clientGoIndexer, flyballIndexer
	b.Run("ByIndex, 200 objects", func(b *testing.B) {
		b.Run("client-go", each(func(i int) { all, _ := theirs().ByIndex("group", group(i)); found += len(all) }))
		b.Run("Flyball", each(func(i int) { all, _ := ours().ByIndex("group", group(i)); found += len(all) }))
		b.Run("Flyball, iterator", each(func(i int) { all, _ := ours().AllByIndex("group", group(i)); count(all) }))
	})
	b.Run("List, 100,000 objects", func(b *testing.B) {
		b.Run("client-go", each(func(int) { found += len(theirs().List()) }))
		b.Run("Flyball", each(func(int) { found += len(ours().List("", nil)) }))
		b.Run("Flyball, iterator", each(func(int) { count(ours().All()) }))
	})
	b.Run("List of a namespace, 200 objects", func(b *testing.B) {
		b.Run("client-go", each(func(i int) {
			_ = cache.ListAllByNamespace(theirs(), "namespace-"+group(i), labels.Everything(), func(any) { found++ })
		}))
		b.Run("Flyball", each(func(i int) { found += len(ours().List("namespace-"+group(i), nil)) }))
	})
	b.Run("List by a label without an index, 200 objects", func(b *testing.B) {
		b.Run("client-go", each(func(int) { _ = cache.ListAll(theirs(), selector, func(any) { found++ }) }))
		b.Run("Flyball", each(func(int) { found += len(ours().List("", selector)) }))
	})
	b.Run("update of one object", func(b *testing.B) {
		b.Run("client-go", each(func(i int) { _ = theirs().Update(state(i)) }))
		deltas := make([]deltafifo.Delta[*corev1.Pod], 1)
		b.Run("Flyball", each(func(i int) { apply(deltas, i) }))
	})
	b.Run("update of 100 objects at once", func(b *testing.B) {
		transaction, deltas := make([]cache.Transaction, 100), make([]deltafifo.Delta[*corev1.Pod], 100)
		b.Run("client-go", each(func(i int) {
			for j := range transaction {
				transaction[j] = cache.Transaction{
					Type: cache.TransactionTypeUpdate, Object: state(i*len(transaction) + j),
				}
			}
			_ = theirs().(cache.TransactionStore).Transaction(transaction...)
		}))
		b.Run("Flyball", each(func(i int) { apply(deltas, i) }))
	})
}

// each is a benchmark of f, which is called once before so that it has what it needs.
func each(f func(i int)) func(b *testing.B) {
	return func(b *testing.B) {
		f(0)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			f(i)
		}
	}
}

// apply gives the next states to Flyball's indexer in one batch.
func apply(deltas []deltafifo.Delta[*corev1.Pod], i int) {
	for j := range deltas {
		p := state(i*len(deltas) + j)
		deltas[j] = deltafifo.Delta[*corev1.Pod]{
			Object: p, ResourceVersion: p.ResourceVersion, Accept: deltafifo.AcceptAll,
		}
	}
	_, _ = flyballIndexer().Apply(deltas)
}
