package indexer

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/objects"
)

// TestBytesOfAnObject: besides the object, the cache takes at most 250 bytes for each: its entry (64), its two places
// (32), its key (here 32), the places in the map (at most 50), and the pointers in the buckets (48, and what append
// leaves free).
func TestBytesOfAnObject(t *testing.T) {
	if got := unsafe.Sizeof(entry[objects.Object]{}); got > 64 {
		t.Errorf("an entry has %d bytes; the allocator's next size after 64 is 80", got)
	}
	const n = 10_000
	var all []objects.Object
	for i := range n {
		all = append(all, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%02d", i%40), Name: fmt.Sprintf("web-5d4f8c7b9-%05d", i), ResourceVersion: "1",
		}})
	}
	x := New[objects.Object](nil, Options{})
	before := heapBytes()
	applied, err := x.Apply([]deltafifo.Delta[objects.Object]{
		{Type: deltafifo.Replace, Objects: all, ResourceVersion: "1"},
	})
	if err != nil || len(applied.Changes) != n {
		t.Fatal(len(applied.Changes), err)
	}
	applied.Changes = nil
	if got := (heapBytes() - before) / n; got > 250 {
		t.Errorf("%d bytes for each object", got)
	}
	runtime.KeepAlive(x)
	runtime.KeepAlive(all)
}

// heapBytes returns the bytes of live objects.
func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
