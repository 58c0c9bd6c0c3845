package chapter04

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/indexer"
)

const page = "04-deltafifo"

// A step is what a reader sees after the cache took something.
type step struct {
	took []change
	sees string
	// version is the highest that the cache has taken. never says that the server never was in that state, missing
	// the changes up to version that the cache is behind.
	version int
	never   bool
	missing []change
}

// states are what the server was like, before the history and after each change.
func states() (all []string) {
	now := maps.Clone(before)
	all = append(all, look(now))
	for _, c := range history {
		apply(now, []change{c})
		all = append(all, look(now))
	}
	return all
}

// tell lets the whole history queue up, and then the cache take it.
func tell(q queue) (steps []step) {
	for _, c := range history {
		q.Push(c)
	}
	now, had, version := maps.Clone(before), map[string]int{}, 10
	for took := q.Take(); took != nil; took = q.Take() {
		apply(now, took)
		version = highest(version, took)
		for _, c := range took {
			had[c.key] = max(had[c.key], c.version)
		}
		s := step{took: slices.Clone(took), sees: look(now), version: version}
		s.never = !slices.Contains(states(), s.sees)
		for _, c := range history {
			if c.version <= version && had[c.key] < c.version {
				s.missing = append(s.missing, c)
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// deletions counts the deletions in the steps.
func deletions(steps []step) (n int) {
	for _, s := range steps {
		for _, c := range s.took {
			if c.gone {
				n++
			}
		}
	}
	return n
}

// printed is the trace.
func printed(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "takes %-10s  the cache is at %d: %s\n", names(s.took), s.version, s.sees)
		if s.never {
			b.WriteString("                  the server never was in this state\n")
		}
		if len(s.missing) > 0 {
			fmt.Fprintf(&b, "                  it does not have %s\n", names(s.missing))
		}
	}
	fmt.Fprintf(&b, "deletions on the server: 1, deletions taken: %d\n", deletions(steps))
	return b.String()
}

func TestChapter04History(t *testing.T) {
	var b strings.Builder
	all := states()
	fmt.Fprintf(&b, "10                   %s\n", all[0])
	for i, c := range history {
		fmt.Fprintf(&b, "%d  %-15s  %s\n", c.version, c.says, all[i+1])
	}
	for _, s := range all {
		if strings.Count(s, "leads") > 1 {
			t.Errorf("two lead on the server: %s", s)
		}
	}
	book.Trace(t, page, b.String())
}

func TestChapter04Newest(t *testing.T) {
	steps := tell(&newest{states: map[string]change{}})
	if deletions(steps) != 0 || !steps[0].never {
		t.Errorf("the newest states tell too much:\n%s", printed(steps))
	}
	book.Trace(t, page, printed(steps))
}

func TestChapter04PerKey(t *testing.T) {
	steps := tell(&perKey{changes: map[string][]change{}})
	if deletions(steps) != 1 || !steps[0].never || len(steps[0].missing) == 0 {
		t.Errorf("the lists per key are right:\n%s", printed(steps))
	}
	if theirs := tell(newClientGo(t)); printed(theirs) != printed(steps) {
		t.Errorf("client-go's DeltaFIFO hands out\n%s, the chapter says it does this:\n%s",
			printed(theirs), printed(steps))
	}
	book.Trace(t, page, printed(steps))
}

func TestChapter04Log(t *testing.T) {
	steps := tell(&log{})
	for _, s := range steps {
		if s.never || len(s.missing) > 0 {
			t.Errorf("the log is wrong:\n%s", printed(steps))
		}
	}
	book.Trace(t, page, printed(steps))
}

// TestChapter04Designs draws what a reader sees with each design.
func TestChapter04Designs(t *testing.T) {
	row := func(name string, steps []step) []figure.Cell {
		cells := []figure.Cell{{Text: name}, {Text: "db-1"}}
		for _, s := range steps {
			var lead []string
			for _, seen := range strings.Split(s.sees, ", ") {
				if pod, ok := strings.CutSuffix(seen, " leads"); ok {
					lead = append(lead, pod[:4])
				}
			}
			cell := figure.Cell{Text: strings.Join(lead, "+")}
			if len(lead) == 0 {
				cell.Text = "nobody"
			}
			if s.never {
				cell.Class = figure.Bad
			}
			cells = append(cells, cell)
		}
		for len(cells) < 7 {
			cells = append(cells, figure.Cell{})
		}
		return cells
	}
	server := tell(&log{}) // TestChapter04Log has checked that it goes through the server's states.
	rows := [][]figure.Cell{
		row("the server", server),
		row("the newest state of each key", tell(&newest{states: map[string]change{}})),
		row("a list for each key", tell(&perKey{changes: map[string][]change{}})),
		row("one log", server),
	}
	book.Figure(t, "04-designs", figure.Table{
		Title: "Who leads, step by step",
		Desc: "On the server db-1 leads, then nobody, then db-2. With the newest state of each key, and with a list " +
			"for each key, a reader of the cache sees both lead after the first step. With one log it sees what the " +
			"server had.",
		First: 216, Head: []string{"", "before", "1st step", "2nd", "3rd", "4th", "5th"}, Rows: rows,
	}.Draw())
}

// clientGo is client-go's DeltaFIFO as a queue.
type clientGo struct {
	t     *testing.T
	fifo  *cache.DeltaFIFO
	known cache.Store
}

func newClientGo(t *testing.T) clientGo {
	t.Helper()
	byKey := func(obj any) (string, error) { return obj.(change).key, nil }
	known := cache.NewStore(byKey)
	for _, c := range before {
		if err := known.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	return clientGo{t, cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		KeyFunction: byKey, KnownObjects: known, EmitDeltaTypeReplaced: true,
	}), known}
}

func (q clientGo) Push(c change) {
	push := q.fifo.Update
	if c.gone {
		push = q.fifo.Delete
	}
	if err := push(c); err != nil {
		q.t.Fatal(err)
	}
}

func (q clientGo) Take() (changes []change) {
	q.fifo.Close() // So Pop ends when nothing is left.
	_, err := q.fifo.Pop(func(obj any, _ bool) error {
		for _, d := range obj.(cache.Deltas) {
			changes = append(changes, d.Object.(change))
		}
		return nil
	})
	if err != nil && err != cache.ErrFIFOClosed {
		q.t.Fatal(err)
	}
	return changes
}

// pod returns a state of a pod.
func pod(name, uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

// TestChapter04Expanded: a list that is expanded too early leaves a pod behind that is gone.
func TestChapter04Expanded(t *testing.T) {
	var b strings.Builder
	q, now := &log{}, map[string]change{"db-1": {version: 9, key: "db-1", uid: "u1"}}
	fmt.Fprintf(&b, "the cache has    %s\n", look(now))
	q.Push(change{version: 11, key: "web", uid: "u2"})
	b.WriteString("the watch says   web is created\n")
	list := []change{{version: 9, key: "db-1", uid: "u1"}}
	fmt.Fprintf(&b, "the list says    %s, at version 20\n", look(map[string]change{"db-1": list[0]}))
	expand(q, now, list)
	b.WriteString("the queue has   ")
	for _, c := range *q {
		fmt.Fprintf(&b, " %s of version %d,", c.key, c.version)
	}
	b.WriteString(" and no deletion\n")
	for took := q.Take(); took != nil; took = q.Take() {
		apply(now, took)
	}
	fmt.Fprintf(&b, "the cache has    %s\n", look(now))
	if _, ghost := now["web"]; !ghost {
		t.Error("the list that was expanded early did no harm")
	}
	book.Trace(t, page, b.String())
}

// TestChapter04Replace: the same with the real log and the real cache.
func TestChapter04Replace(t *testing.T) {
	var b strings.Builder
	store := indexer.New[*corev1.Pod](nil, indexer.Options{})
	fifo := deltafifo.New[*corev1.Pod]()
	take := func() {
		applied, err := store.Apply(fifo.Take(nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range applied.Changes {
			kind := map[indexer.ChangeType]string{
				indexer.ChangeAdd: "add", indexer.ChangeUpdate: "update", indexer.ChangeDelete: "delete",
			}[c.Type]
			if c.Stale {
				kind = "conclude from the list: delete"
			}
			fmt.Fprintf(&b, "%s %s; its last known state has version %s\n", kind, c.Key, c.New.ResourceVersion)
		}
	}
	push := func(d deltafifo.Delta[*corev1.Pod]) {
		if err := fifo.Push(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	push(deltafifo.Delta[*corev1.Pod]{
		Type: deltafifo.Replace, Objects: []*corev1.Pod{pod("db-1", "u1", "9")}, ResourceVersion: "10",
	})
	take()
	push(deltafifo.Delta[*corev1.Pod]{Type: deltafifo.Upsert, Object: pod("web", "u2", "11"), ResourceVersion: "11"})
	push(deltafifo.Delta[*corev1.Pod]{
		Type: deltafifo.Replace, Objects: []*corev1.Pod{pod("db-1", "u1", "9")}, ResourceVersion: "20",
	})
	fmt.Fprintf(&b, "-- %d deltas wait: web is created, and the list\n", fifo.Len())
	take()
	fmt.Fprintf(&b, "-- the cache has %v, complete up to %s\n", store.Keys(), store.ResourceVersion())
	if _, ghost := store.Get("web"); ghost || store.ResourceVersion() != "20" {
		t.Error("web is left behind")
	}
	book.Trace(t, page, b.String())
}

const (
	// perBatch and perChange are what it costs to apply a batch.
	perBatch, perChange = 2 * time.Millisecond, 50 * time.Microsecond
	// offset keeps the changes from coming at the moment at which a transaction ends.
	offset = 7 * time.Microsecond
)

// A run is what happened in a second of changes.
type run struct {
	transactions []figure.Span
	largest      int
	// waiting is how many changes wait at the end, late how long the last one has waited when the cache has it.
	waiting int
	late    time.Duration
	// waitingAt is how many wait after 20 ms.
	waitingAt int
}

// storm makes changes for a second, one each period, and applies them one by one or all at once.
func storm(t *testing.T, period time.Duration, oneByOne bool) (r run) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fifo := deltafifo.New[int]()
		began := time.Now()
		var mu sync.Mutex
		changes := int(time.Second / period)
		var last time.Duration
		var producer sync.WaitGroup
		defer producer.Wait()
		producer.Go(func() {
			time.Sleep(offset)
			for n := range changes {
				if err := fifo.Push(t.Context(), deltafifo.Delta[int]{Object: n}); err != nil {
					return
				}
				mu.Lock()
				last = time.Since(began)
				mu.Unlock()
				time.Sleep(period)
			}
		})
		done, unread := 0, []deltafifo.Delta[int]{}
		atEnd := false
		for done < changes {
			if len(unread) == 0 {
				<-fifo.Ready()
			}
			unread = append(unread, fifo.Take(nil)...)
			batch := len(unread)
			if oneByOne && batch > 1 {
				batch = 1
			}
			if batch == 0 {
				continue
			}
			from := time.Since(began)
			time.Sleep(perBatch + time.Duration(batch)*perChange)
			to := time.Since(began)
			unread = unread[batch:]
			done += batch
			r.largest = max(r.largest, batch)
			if to < 22*time.Millisecond {
				r.transactions = append(r.transactions, figure.Span{
					From: float64(from) / 1e6, To: float64(to) / 1e6, Label: fmt.Sprint(batch), Class: figure.A,
				})
				r.waitingAt = len(unread) + fifo.Len()
			}
			if to > time.Second && !atEnd {
				atEnd = true
				r.waiting = len(unread) + fifo.Len()
			}
		}
		mu.Lock()
		defer mu.Unlock()
		r.late = time.Since(began) - last
	})
	return r
}

func TestChapter04Batches(t *testing.T) {
	table := "| changes a second | one by one: the last one is late by | all at once: largest batch | and late by |\n" +
		"|---|---|---|---|\n"
	for _, rate := range []int{100, 1000, 10000} {
		period := time.Second / time.Duration(rate)
		one, all := storm(t, period, true), storm(t, period, false)
		table += fmt.Sprintf("| %d | %v | %d | %v |\n", rate, one.late.Round(100*time.Microsecond), all.largest,
			all.late.Round(100*time.Microsecond))
		if rate >= 1000 && one.late < 100*all.late {
			t.Errorf("at %d a second, one by one is late by %v, all at once by %v", rate, one.late, all.late)
		}
	}
	book.Block(t, page, table)
}

func TestChapter04BatchFigure(t *testing.T) {
	one, all := storm(t, time.Millisecond, true), storm(t, time.Millisecond, false)
	marks := make([]figure.Mark, 0, 22)
	for n := range 22 {
		marks = append(marks, figure.Mark{At: float64(n), Class: figure.Lit})
	}
	if one.waitingAt < 5*all.waitingAt {
		t.Errorf("%d wait one by one, %d all at once", one.waitingAt, all.waitingAt)
	}
	panel := func(heading string, r run, class figure.Class) figure.Panel {
		return figure.Panel{
			Heading: heading, Remark: fmt.Sprintf("%d wait at the end", r.waitingAt), RemarkClass: class,
			Lanes: []figure.Lane{{Name: "changes", Marks: marks}, {Name: "transactions", Spans: r.transactions}},
		}
	}
	book.Figure(t, "04-batches", figure.TimeChart{
		Title: "One by one, and all at once",
		Desc: "A change comes every millisecond and a transaction takes two. One by one, the queue grows with every " +
			"second change. If each transaction takes all that wait, it takes two or three, and the queue stays short.",
		Until: 22, Step: 2, Unit: " ms",
		Panels: []figure.Panel{
			panel("one change in each transaction", one, figure.Bad),
			panel("all that wait in each transaction", all, figure.Good),
		},
	}.Draw())
}

// TestChapter04Full: the log is bounded, and whoever appends waits.
func TestChapter04Full(t *testing.T) {
	var b strings.Builder
	synctest.Test(t, func(t *testing.T) {
		fifo := deltafifo.New[int]()
		began := time.Now()
		var mu sync.Mutex
		say := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&b, "%3v  %s\n", time.Since(began), fmt.Sprintf(format, args...))
		}
		ctx, cancel := context.WithCancel(t.Context())
		pushed := 0
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				if err := fifo.Push(ctx, deltafifo.Delta[int]{Object: pushed}); err != nil {
					say("Push returns %q: it has appended %d", err, pushed)
					return
				}
				pushed++
			}
		}()
		synctest.Wait()
		say("%d deltas are queued, and Push waits", fifo.Len())
		time.Sleep(10 * time.Second)
		batch := fifo.Take(nil)
		say("Take returns %d", len(batch))
		synctest.Wait()
		say("%d deltas are queued, and Push waits", fifo.Len())
		time.Sleep(10 * time.Second)
		say("the program ends")
		cancel()
		<-ended
		if fifo.Len() != deltafifo.Limit || pushed != 2*deltafifo.Limit {
			t.Errorf("%d deltas are queued, %d were appended", fifo.Len(), pushed)
		}
	})
	book.Trace(t, page, b.String())
}

// TestChapter04Arrays: a steady stream allocates nothing, because the two arrays take turns.
func TestChapter04Arrays(t *testing.T) {
	fifo := deltafifo.New[int]()
	var batch []deltafifo.Delta[int]
	allocated := testing.AllocsPerRun(100, func() {
		for n := range 100 {
			if err := fifo.Push(t.Context(), deltafifo.Delta[int]{Object: n}); err != nil {
				t.Fatal(err)
			}
		}
		batch = fifo.Take(batch)
	})
	if allocated != 0 {
		t.Errorf("%v allocations for 100 deltas and a batch", allocated)
	}
}
