package clientgo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// elsewhere has the exported names of client-go's package that are not here, by the reason why. All types are client-go's own, so a
// program may import its package beside this one.
var elsewhere = map[string]string{
	"the parts that an informer is made of: ours are in package informer": `
		Config New ProcessFunc ProcessBatchFunc PopProcessFunc ShouldResyncFunc Queue QueueWithBatch
		Delta Deltas DeltaType Added Updated Deleted Replaced ReplacedAll ReplacedAllInfo Sync SyncAll SyncAllInfo Bookmark BookmarkInfo
		DeltaFIFO DeltaFIFOOptions NewDeltaFIFO NewDeltaFIFOWithOptions KeyLister KeyGetter KeyListerGetter ErrFIFOClosed ErrZeroLengthDeltasObject
		RealFIFO RealFIFOOptions NewRealFIFO NewRealFIFOWithOptions TransformingStore
		NewReflector NewNamedReflector NewReflectorWithOptions NewNamespaceKeyedIndexerAndReflector ReflectorOptions ReflectorStore
		ReflectorBookmarkStore ResourceVersionUpdater ResourceVersionComparator VeryShortWatchError RetryWithDeadline NewRetryWithDeadline
		Indices ThreadSafeStore ThreadSafeStoreOption ThreadSafeStoreTransaction ThreadSafeStoreWithTransaction NewThreadSafeStore
		MutationDetector NewCacheMutationDetector`,
	"other stores, which no informer needs": `
		FIFO NewFIFO Heap NewHeap LessFunc UndeltaStore NewUndeltaStore
		ExpirationCache ExpirationPolicy NewExpirationStore NewTTLStore TTLPolicy TimestampedEntry
		MutationCache MutationCacheOptions NewIntegerResourceVersionMutationCache NewIntegerResourceVersionMutationCacheWithOptions`,
	"metrics: ours are read from Stats, see package informer/metrics": `
		InformerMetricsProvider SetInformerMetricsProvider InformerName InformerNameAndResource NewInformerName
		WithStoreMetrics WithThreadSafeStoreMetrics MetricsProvider SetReflectorMetricsProvider
		CounterMetric GaugeMetric HistogramMetric SummaryMetric`,
	"for client-go's own tests": `
		FakeCustomStore FakeExpirationPolicy NewFakeExpirationStore ResetInformerNamesForTesting`,
}

// TestNames: every exported name of client-go's package is either here or on the list above, and not both.
func TestNames(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "k8s.io/client-go/tools/cache").Output()
	if err != nil {
		t.Fatal(err)
	}
	ours, left := exported(t, "."), map[string]bool{}
	for _, names := range elsewhere {
		for _, name := range strings.Fields(names) {
			left[name] = true
		}
	}
	for name := range exported(t, strings.TrimSpace(string(dir))) {
		switch {
		case ours[name] == left[name]:
			t.Errorf("%s: here %v, said to be elsewhere %v", name, ours[name], left[name])
		case left[name]:
			delete(left, name)
		}
	}
	for name := range left {
		t.Errorf("client-go has no %s", name)
	}
}

// exported has the exported names of the package in dir, tests and methods excluded.
func exported(t *testing.T, dir string) map[string]bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names[id.Name] = true
		}
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(s.Name)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							add(id)
						}
					}
				}
			}
		}
	}
	return names
}
