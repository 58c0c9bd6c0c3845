package workqueue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// model is the queue as one would write it on a napkin: no locks, no timers, no optimisations.
type model struct {
	ready, processing []string
	low               []string        // ready, and of negative priority
	isLow             map[string]bool // the next run is of negative priority
	passed            int             // how many of ready were handed out since the last of low, while there was one
	again             map[string]bool // processing and dirty
	delays            []modelDelay    // in the order in which they were set
	now               time.Duration
}

type modelDelay struct {
	key     string
	at      time.Duration
	requeue bool
}

// prioritise records the priority of an add.
func (m *model) prioritise(key string, low bool) {
	delayed := slices.ContainsFunc(m.delays, func(d modelDelay) bool { return d.key == key })
	if !delayed && !m.again[key] && !slices.Contains(m.ready, key) && !slices.Contains(m.low, key) {
		m.isLow[key] = low
	} else if i := slices.Index(m.low, key); !low {
		m.isLow[key] = false
		if i >= 0 {
			m.low = slices.Delete(m.low, i, i+1)
			m.push(key)
		}
	}
}

func (m *model) push(key string) {
	if m.isLow[key] {
		m.low = append(m.low, key)
	} else {
		m.ready = append(m.ready, key)
	}
}

func (m *model) depth() int { return len(m.ready) + len(m.low) }

func (m *model) add(key string) {
	m.delays = slices.DeleteFunc(m.delays, func(d modelDelay) bool { return d.requeue && d.key == key })
	switch {
	case slices.Contains(m.processing, key):
		m.again[key] = true
	case !slices.Contains(m.ready, key) && !slices.Contains(m.low, key):
		m.push(key)
	}
}

func (m *model) delay(key string, after time.Duration, requeue bool) {
	if after <= 0 {
		m.add(key)
		return
	}
	same := func(d modelDelay) bool { return d.key == key && d.requeue == requeue }
	i := slices.IndexFunc(m.delays, same)
	dirty := slices.Contains(m.ready, key) || slices.Contains(m.low, key) || m.again[key]
	if requeue && dirty || !requeue && i >= 0 && m.delays[i].at <= m.now+after {
		return
	}
	m.delays = append(slices.DeleteFunc(m.delays, same), modelDelay{key, m.now + after, requeue})
}

func (m *model) advance(d time.Duration) {
	m.now += d
	for {
		i := slices.IndexFunc(m.delays, func(d modelDelay) bool { return d.at <= m.now })
		for j, d := range m.delays {
			if i >= 0 && d.at < m.delays[i].at {
				i = j
			}
		}
		if i < 0 {
			return
		}
		key := m.delays[i].key
		m.delays = slices.Delete(m.delays, i, i+1)
		m.add(key)
	}
}

func (m *model) get() string {
	from := &m.ready
	switch {
	case len(m.low) > 0 && (len(m.ready) == 0 || m.passed == 9):
		from, m.passed = &m.low, 0
	case len(m.low) > 0:
		m.passed++
	}
	key := (*from)[0]
	*from = (*from)[1:]
	m.processing = append(m.processing, key)
	return key
}

func (m *model) done(key string) {
	i := slices.Index(m.processing, key)
	if i < 0 {
		return
	}
	m.processing = slices.Delete(m.processing, i, i+1)
	if m.again[key] {
		delete(m.again, key)
		m.push(key)
	}
}

// compareWithModel runs one operation per byte pair on a queue and on the model, and compares all there is to see.
func compareWithModel(t *testing.T, program []byte, keyCount int) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		m := newModel()
		for ; len(program) >= 2; program = program[2:] {
			key := fmt.Sprint("key-", int(program[1])%keyCount)
			after := time.Duration(program[1]%16) * time.Second
			name := step(t, q, m, program[0]%10, key, after)
			s := q.Stats()
			if s.Depth != m.depth() || s.Processing != len(m.processing) || s.Delayed != len(m.delays) {
				t.Fatalf("after %s %s: got %d ready, %d processing, %d delayed; want %d, %d, %d",
					name, key, s.Depth, s.Processing, s.Delayed, m.depth(), len(m.processing), len(m.delays))
			}
		}
		for len(m.processing) > 0 {
			q.Done(m.processing[0])
			m.done(m.processing[0])
		}
		m.advance(time.Hour)
		time.Sleep(time.Hour)
		synctest.Wait()
		var left []string
		for m.depth() > 0 {
			left = append(left, m.get())
		}
		wantKeys(t, q, left...)
	})
}

func newModel() *model { return &model{again: map[string]bool{}, isLow: map[string]bool{}} }

// step does one operation on both and returns its name.
func step(t *testing.T, q *workqueue.Queue[string], m *model, op byte, key string, after time.Duration) string {
	switch op {
	case 0:
		q.AddAfter(key, after)
		m.prioritise(key, false)
		m.delay(key, after, false)
		return "AddAfter"
	case 1:
		q.RequeueAfter(key, after)
		m.prioritise(key, false)
		m.delay(key, after, true)
		return "RequeueAfter"
	case 2, 3:
		if m.depth() == 0 {
			return "nothing with"
		}
		if got, want := get(t, q).Key, m.get(); got != want {
			t.Fatalf("Get: got %s, want %s", got, want)
		}
		return "Get, before which came"
	case 4:
		q.Done(key)
		m.done(key)
		return "Done"
	case 5:
		if m.done(key); m.depth() == 0 {
			q.Done(key)
			return "Done"
		}
		item := workqueue.Item[string]{Key: key}
		err := q.Next(t.Context(), &item)
		if want := m.get(); err != nil || item.Key != want {
			t.Fatalf("Next: got %s, %v, want %s", item.Key, err, want)
		}
		return "Next, given"
	case 6:
		time.Sleep(after)
		synctest.Wait()
		m.advance(after)
		return "Sleep, before which came"
	case 8, 9:
		low := workqueue.LowPriority
		q.AddWith(key, workqueue.AddOptions{Priority: &low})
		m.prioritise(key, true)
		m.add(key)
		return "Add with low priority"
	default:
		q.Add(key)
		m.prioritise(key, false)
		m.add(key)
		return "Add"
	}
}

func TestQueueMatchesModel(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		program := make([]byte, 1000)
		for i := range program {
			program[i] = byte(random.Uint32())
		}
		compareWithModel(t, program, 1+int(seed%40))
	}
}

// The table forgets idle keys beyond a number. Keys must be found, forgotten and found again across that.
func TestQueueMatchesModelWithManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{})
		defer q.ShutDown()
		m := newModel()
		random := rand.New(rand.NewPCG(7, 7))
		for range 8 {
			for range 1000 {
				key := fmt.Sprint("key-", random.IntN(5000))
				q.Add(key)
				m.add(key)
			}
			for len(m.ready) > 0 {
				got, want := get(t, q).Key, m.get()
				if got != want {
					t.Fatalf("Get: got %s, want %s", got, want)
				}
			}
			random.Shuffle(len(m.processing), func(i, j int) {
				m.processing[i], m.processing[j] = m.processing[j], m.processing[i]
			})
			for len(m.processing) > 0 {
				q.Done(m.processing[0])
				m.done(m.processing[0])
			}
		}
	})
}

func FuzzQueueMatchesModel(f *testing.F) {
	f.Add([]byte{7, 1, 2, 0, 7, 1, 4, 1, 0, 5, 1, 3, 6, 4}, uint8(3))
	f.Add([]byte{0, 9, 0, 3, 6, 3, 2, 0, 1, 3, 7, 3, 4, 3}, uint8(16))
	f.Fuzz(func(t *testing.T, program []byte, keyCount uint8) {
		if len(program) > 2000 {
			program = program[:2000]
		}
		compareWithModel(t, program, 1+int(keyCount))
	})
}

// FuzzPriorityOrder compares the order with a sort.
func FuzzPriorityOrder(f *testing.F) {
	f.Add([]byte{3, 1, 200, 3, 0, 255})
	f.Fuzz(func(t *testing.T, priorities []byte) {
		synctest.Test(t, func(t *testing.T) {
			const age = 2 * time.Millisecond
			q := workqueue.New(workqueue.Options[string]{
				Order: workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{Age: age}),
			})
			type ranked struct {
				key  string
				rank time.Duration
			}
			var want []ranked
			for i, b := range priorities {
				if b == 255 && i > 0 {
					at := int(priorities[i-1]) % i
					if at < len(want) { // raise an earlier one, which keeps the time it came at
						addWithPriority(q, want[at].key, 1000)
						want[at].rank -= (1000 - priorityOf(want[at].key)) * age
					}
				}
				key := fmt.Sprintf("%d/%d", i, int8(b))
				addWithPriority(q, key, int(int8(b)))
				want = append(want, ranked{key, time.Duration(i)*time.Millisecond - time.Duration(int8(b))*age})
				if b == 255 {
					break
				}
				time.Sleep(time.Millisecond)
			}
			slices.SortStableFunc(want, func(a, b ranked) int { return int(a.rank - b.rank) })
			var order []string
			for _, w := range want {
				order = append(order, w.key)
			}
			wantKeys(t, q, order...)
		})
	})
}

func priorityOf(key string) time.Duration {
	var i, priority int
	fmt.Sscanf(key, "%d/%d", &i, &priority)
	return time.Duration(priority)
}
