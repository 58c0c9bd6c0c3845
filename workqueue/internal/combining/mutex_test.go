package combining

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// TestDelegatedOperationsAreExecuted has some goroutines delegate operations while others hold the mutex again and
// again. Each operation is executed once, alone, and in the order of its goroutine.
func TestDelegatedOperationsAreExecuted(t *testing.T) {
	const goroutines, operations = 4, 2_000
	type op struct{ of, n int }
	executed := make([][]int, goroutines) // Only the mutex guards it; the race detector watches.
	m := &Mutex[op]{Do: func(o *op) { executed[o.of] = append(executed[o.of], o.n) }}
	var all sync.WaitGroup
	for of := range goroutines {
		all.Go(func() {
			for n := range operations {
				switch n % 3 {
				case 0:
					m.Delegate(&op{of, n})
				case 1:
					m.Lock()
					m.Do(&op{of, n})
					m.Unlock()
				default:
					if !m.TryLock() {
						m.Delegate(&op{of, n})
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
	if m.count.Load() != 0 || m.pending.Load() != nil {
		t.Errorf("%d operations are pending", m.count.Load())
	}
}

// TestTheHolderExecutesDelegatedOperations delegates operations while the mutex is held: Delegate returns at once, and
// Unlock executes them.
func TestTheHolderExecutesDelegatedOperations(t *testing.T) {
	var executed []int
	m := &Mutex[int]{Do: func(n *int) { executed = append(executed, *n) }}
	m.Lock()
	if m.TryLock() {
		t.Fatal("TryLock took a mutex that is held")
	}
	m.Delegate(new(1))
	m.Delegate(new(2))
	if len(executed) != 0 {
		t.Errorf("%v were executed while the mutex was held", executed)
	}
	m.Unlock()
	m.Delegate(new(3))
	if !slices.Equal(executed, []int{1, 2, 3}) {
		t.Errorf("executed: %v", executed)
	}
}

// TestRoundsAreBounded has each operation delegate another, as producers do that never pause. After a few rounds, they
// must wait for the mutex.
func TestRoundsAreBounded(t *testing.T) {
	executed := 0
	var m *Mutex[int]
	m = &Mutex[int]{Do: func(*int) {
		if executed++; executed < 1_000 && !m.overloaded.Load() {
			m.Delegate(new(0))
		}
	}}
	m.Delegate(new(0))
	if want := maxRounds + 1; executed != want {
		t.Errorf("%d operations were executed by one goroutine, want %d", executed, want)
	}
	if m.overloaded.Load() {
		t.Error("operations must still wait for the mutex")
	}
}

// TestDelegatingIsBounded delegates more than fits while the mutex is held: the last waits for the mutex.
func TestDelegatingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var executed []int
		m := &Mutex[int]{Do: func(n *int) { executed = append(executed, *n) }}
		m.Lock()
		for n := range maxPending {
			m.Delegate(new(n))
		}
		waited := make(chan struct{})
		go func() { m.Delegate(new(maxPending)); close(waited) }()
		for range 1_000 { // synctest.Wait does not count a goroutine that waits for a mutex as blocked.
			runtime.Gosched()
		}
		if n := m.count.Load(); n != maxPending {
			t.Errorf("%d operations are pending", n)
		}
		m.Unlock()
		<-waited
		if len(executed) != maxPending+1 || !slices.IsSorted(executed) {
			t.Errorf("%d operations, sorted: %t", len(executed), slices.IsSorted(executed))
		}
	})
}

// TestDelegatingAllocatesNothing delegates operations while the mutex is held.
func TestDelegatingAllocatesNothing(t *testing.T) {
	m := &Mutex[[100]int]{Do: func(*[100]int) {}}
	allocs := testing.AllocsPerRun(1000, func() {
		m.Lock()
		m.Delegate(new([100]int))
		m.Unlock()
	})
	if allocs >= 1 { // A collection may empty the pool.
		t.Errorf("%v allocations", allocs)
	}
}

// TestHold: all operations that are executed in one hold of the mutex see the same number, and no others do.
func TestHold(t *testing.T) {
	var seen []uint64
	m := &Mutex[int]{}
	m.Do = func(*int) { seen = append(seen, m.Hold()) }
	m.Lock()
	held := m.Hold()
	m.Delegate(new(int))
	m.Delegate(new(int))
	m.Unlock()
	m.Lock()
	defer m.Unlock()
	if want := []uint64{held + 1, held + 1}; !slices.Equal(seen, want) || m.Hold() != held+2 {
		t.Errorf("the operations saw %v, want %v; then %d", seen, want, m.Hold())
	}
}
