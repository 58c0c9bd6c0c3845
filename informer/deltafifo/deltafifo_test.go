package deltafifo

import "testing"

// TestLeaveAndReturn: nothing that is queued while the consumer is away waits for it, and there is never more than one
// consumer.
func TestLeaveAndReturn(t *testing.T) {
	started := 0
	next := func() { started++ }
	push := func(f *DeltaFIFO[string]) {
		if err := f.Push(t.Context(), Delta[string]{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name    string
		away    func(f *DeltaFIFO[string])
		started int
	}{
		{"nothing", func(*DeltaFIFO[string]) {}, 0},
		{"a push", push, 1},
		{"two pushes", func(f *DeltaFIFO[string]) { push(f); push(f) }, 1},
		{"a call of Wake", (*DeltaFIFO[string]).Wake, 1},
	} {
		started = 0
		f := New[string]()
		if !f.Leave(next) {
			t.Errorf("%s: the consumer of an empty log cannot leave", c.name)
		}
		c.away(f)
		if back := f.Return(); started != c.started || back != (c.started == 0) {
			t.Errorf("%s: %d consumers were started, want %d; Return is %v", c.name, started, c.started, back)
		}
		push(f)
		if started != c.started {
			t.Errorf("%s: a consumer was started after the return of the last", c.name)
		}
		if <-f.Ready(); f.Leave(next) {
			t.Errorf("%s: the consumer can leave what is queued", c.name)
		}
	}
}

// TestWakeBeforeLeave: a consumer that was woken after it took what was queued looks again before it leaves.
func TestWakeBeforeLeave(t *testing.T) {
	f := New[string]()
	f.Wake()
	if f.Take(nil); !f.Leave(func() {}) || !f.Return() {
		t.Error("the consumer cannot leave, although it has looked since it was woken")
	}
	if f.Wake(); f.Leave(func() {}) {
		t.Error("the consumer can leave before it has looked")
	}
}

// TestTwoConsumersAway: of two consumers that are away, the first to return is the consumer.
func TestTwoConsumersAway(t *testing.T) {
	f := New[string]()
	second := false
	if !f.Leave(func() { second = true }) {
		t.Fatal("the consumer of an empty log cannot leave")
	}
	if err := f.Push(t.Context(), Delta[string]{}); err != nil || !second {
		t.Fatalf("a second consumer was started: %v, %v", second, err)
	}
	if batch := f.Take(nil); len(batch) != 1 || !f.Leave(func() { t.Error("a third consumer was started") }) {
		t.Fatal("the second consumer cannot leave")
	}
	if !f.Return() {
		t.Error("the first consumer is not needed, although the second is away")
	}
	if f.Return() {
		t.Error("the second consumer is needed, although the first is back")
	}
}
