package bench

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"text/tabwriter"
	"time"

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

// twoIndexes are by a value that finds 200, and by one that finds all.
func twoIndexes() (names []string, values func(name string, p *corev1.Pod) []string) {
	return []string{"group", "all"}, func(name string, p *corev1.Pod) []string { return []string{p.Labels[name]} }
}

func flyballIndexer() *indexer.Indexer[*corev1.Pod] {
	x := indexer.New[*corev1.Pod](nil, indexer.Options{})
	names, values := twoIndexes()
	for _, name := range names {
		if err := x.AddIndex(name, func(p *corev1.Pod) ([]string, error) { return values(name, p), nil }); err != nil {
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
}

func clientGoIndexer() cache.Indexer {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	names, values := twoIndexes()
	for _, name := range names {
		indexers[name] = func(obj any) ([]string, error) { return values(name, obj.(*corev1.Pod)), nil }
	}
	x := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	for i := range indexed {
		if err := x.Add(indexedPod(i, 1)); err != nil {
			panic(err)
		}
	}
	return x
}

// indexWork is what both caches are asked to do.
type indexWork struct {
	name            string
	batches, calls  int
	per             int // How many things one call does; 0 is one.
	clientGo, other func(i int)
	// iterate is other by iterator; nil when there is none.
	iterate func(i int)
}

func indexWorks() []indexWork {
	theirs, ours := clientGoIndexer(), flyballIndexer()
	sink := 0
	group := func(i int) string { return strconv.Itoa(i % (indexed / groupSize)) }
	// Two states of each object, in turns: an update replaces one object by another, as it does in an informer.
	states := make([]*corev1.Pod, 20_000)
	for i := range states {
		states[i] = indexedPod(i%10_000, i+2)
	}
	one := make([]deltafifo.Delta[*corev1.Pod], 1)
	batch, deltas := make([]cache.Transaction, 100), make([]deltafifo.Delta[*corev1.Pod], 100)
	selector := labels.SelectorFromSet(labels.Set{"group": "7"})
	return []indexWork{
		{
			"ByIndex, 200 of 100k", 30, 200, 0,
			func(i int) { all, _ := theirs.ByIndex("group", group(i)); sink += len(all) },
			func(i int) { all, _ := ours.ByIndex("group", group(i)); sink += len(all) },
			func(i int) {
				all, _ := ours.AllByIndex("group", group(i))
				for range all {
					sink++
				}
			},
		},
		{
			"List of 100k", 30, 2, 0, func(int) { sink += len(theirs.List()) },
			func(int) { sink += len(ours.List("", nil)) },
			func(int) {
				for range ours.All() {
					sink++
				}
			},
		},
		{
			"List of a namespace", 30, 200, 0,
			func(i int) {
				_ = cache.ListAllByNamespace(theirs, "namespace-"+group(i), labels.Everything(), func(any) { sink++ })
			},
			func(i int) { sink += len(ours.List("namespace-"+group(i), nil)) }, nil,
		},
		{
			"List by a label, 200 of 100k", 10, 2, 0,
			func(int) { _ = cache.ListAll(theirs, selector, func(any) { sink++ }) },
			func(int) { sink += len(ours.List("", selector)) }, nil,
		},
		{
			"update, two indexes, 100 at a time", 30, 200, len(batch), func(i int) {
				for j := range batch {
					batch[j] = cache.Transaction{
						Type:   cache.TransactionTypeUpdate,
						Object: states[(i*len(batch)+j)%len(states)],
					}
				}
				_ = theirs.(cache.TransactionStore).Transaction(batch...)
			},
			func(i int) {
				for j := range deltas {
					p := states[(i*len(deltas)+j)%len(states)]
					deltas[j] = deltafifo.Delta[*corev1.Pod]{
						Object: p, ResourceVersion: p.ResourceVersion,
						Accept: deltafifo.AcceptAll,
					}
				}
				_, _ = ours.Apply(deltas)
			}, nil,
		},
		{
			"update, two indexes", 30, 20_000, 0, func(i int) { _ = theirs.Update(states[i%len(states)]) },
			func(i int) {
				p := states[i%len(states)]
				one[0] = deltafifo.Delta[*corev1.Pod]{
					Object: p, ResourceVersion: p.ResourceVersion,
					Accept: deltafifo.AcceptAll,
				}
				_, _ = ours.Apply(one)
			}, nil,
		},
	}
}

// BenchmarkIndexUpdate is an update of one object with two indexes besides the namespace.
func BenchmarkIndexUpdate(b *testing.B) {
	works := indexWorks()
	update := works[len(works)-1]
	b.Run("flyball", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			update.other(i)
		}
	})
	b.Run("clientgo", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			update.clientGo(i)
		}
	})
}

// TestIndexRatios prints reads and writes of the cache beside client-go's.
func TestIndexRatios(t *testing.T) {
	if !*ratios {
		t.Skip("run with -ratios")
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	fmt.Fprintln(w, "work\tclient-go µs\tFlyball µs\tratio\titerator µs\tratio\t")
	for _, work := range indexWorks() {
		systems := []func(int){work.clientGo, work.other}
		if work.iterate != nil {
			systems = append(systems, work.iterate)
		}
		best := interleaved(work.batches, work.calls, systems)
		us := func(d time.Duration) float64 {
			return float64(d.Nanoseconds()) / 1e3 / float64(work.calls*max(1, work.per))
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.1f\t", work.name, us(best[0]), us(best[1]), us(best[0])/us(best[1]))
		if work.iterate != nil {
			fmt.Fprintf(w, "%.2f\t%.1f\t", us(best[2]), us(best[0])/us(best[2]))
		}
		fmt.Fprintln(w)
	}
}
