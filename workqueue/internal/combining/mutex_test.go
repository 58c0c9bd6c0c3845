package combining

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestLeftOperationsAreExecuted has some goroutines leave operations while others hold the mutex again and again. Each
// operation is executed once, alone, and in the order of its goroutine.
func TestLeftOperationsAreExecuted(t *testing.T) {
	const goroutines, operations = 4, 2_000
	type op struct{ of, n int }
	executed := make([][]int, goroutines) // Not guarded but by the mutex: the race detector watches.
	m := &Mutex[op]{Do: func(o *op) { executed[o.of] = append(executed[o.of], o.n) }}
	var all sync.WaitGroup
	for of := range goroutines {
		all.Go(func() {
			for n := range operations {
				switch n % 3 {
				case 0:
					m.Leave(op{of, n})
				case 1:
					m.Lock()
					m.Do(&op{of, n})
					m.Unlock()
				default:
					if !m.TryLock() {
						m.Leave(op{of, n})
						continue
					}
					m.Do(&op{of, n})
					m.Unlock()
				}
			}
		})
	}
	all.Wait()
	m.Lock()
	defer m.Unlock()
	for of, ns := range executed {
		if len(ns) != operations || !slices.IsSorted(ns) {
			t.Errorf("goroutine %d: %d operations, sorted: %t", of, len(ns), slices.IsSorted(ns))
		}
	}
	if m.count.Load() != 0 || m.left.Load() != nil {
		t.Errorf("%d operations are left", m.count.Load())
	}
}

// TestWhoHoldsTheMutexExecutesWhatWasLeft leaves operations while the mutex is held: Leave returns at once, and Unlock
// executes them.
func TestWhoHoldsTheMutexExecutesWhatWasLeft(t *testing.T) {
	var executed []int
	m := &Mutex[int]{Do: func(n *int) { executed = append(executed, *n) }}
	m.Lock()
	if m.TryLock() {
		t.Fatal("TryLock took a mutex that is held")
	}
	m.Leave(1)
	m.Leave(2)
	if len(executed) != 0 {
		t.Errorf("%v were executed while the mutex was held", executed)
	}
	m.Unlock()
	m.Leave(3)
	if !slices.Equal(executed, []int{1, 2, 3}) {
		t.Errorf("executed: %v", executed)
	}
}

// TestHelpingIsBounded has each operation leave another, as producers do that never pause. After a few, they are told
// to wait for the mutex.
func TestHelpingIsBounded(t *testing.T) {
	executed := 0
	var m *Mutex[int]
	m = &Mutex[int]{Do: func(*int) {
		if executed++; executed < 1_000 && !m.full.Load() {
			m.Leave(0)
		}
	}}
	m.Leave(0)
	if want := mostHelp + 1; executed != want {
		t.Errorf("%d operations were executed by one goroutine, want %d", executed, want)
	}
	if m.full.Load() {
		t.Error("operations are still to wait")
	}
}

// TestLeavingIsBounded leaves more than fits while the mutex is held: the last waits for the mutex.
func TestLeavingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var executed []int
		m := &Mutex[int]{Do: func(n *int) { executed = append(executed, *n) }}
		m.Lock()
		for n := range mostLeft {
			m.Leave(n)
		}
		waited := make(chan struct{})
		go func() { m.Leave(mostLeft); close(waited) }()
		for range 1_000 { // Waiting for a mutex is nothing that a bubble can wait for.
			runtime.Gosched()
		}
		if n := m.count.Load(); n != mostLeft {
			t.Errorf("%d operations are left", n)
		}
		m.Unlock()
		<-waited
		if len(executed) != mostLeft+1 || !slices.IsSorted(executed) {
			t.Errorf("%d operations, sorted: %t", len(executed), slices.IsSorted(executed))
		}
	})
}

// TestLeavingAllocatesNothing leaves operations while the mutex is held.
func TestLeavingAllocatesNothing(t *testing.T) {
	m := &Mutex[[100]int]{Do: func(*[100]int) {}}
	allocs := testing.AllocsPerRun(1000, func() {
		m.Lock()
		m.Leave([100]int{})
		m.Unlock()
	})
	if allocs >= 1 { // A collection may empty the pool.
		t.Errorf("%v allocations", allocs)
	}
}
