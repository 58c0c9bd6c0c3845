// Package heapsize measures the heap, for tests of what a cache or a history holds.
package heapsize

import "runtime"

// Now returns the bytes of the objects that are alive.
func Now() int {
	runtime.GC()
	runtime.GC() // what pools have let go at the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
