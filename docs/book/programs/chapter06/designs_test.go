package chapter06

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/informer"
)

// A design is a cache with a quick handler and a slow one.
type design interface {
	// change makes a change on the server. Object is which one it is of.
	change(object int)
	// at is how far the cache is, waits how many changes wait for the slow handler.
	at() int
	waits() int
	stop()
}

// loop is the cache's goroutine in the first two designs.
type loop struct {
	version int
	events  chan change
	ended   chan struct{}
	cache   *mirror
}

func newLoop(c *mirror, apply func(change)) *loop {
	l := &loop{events: make(chan change, 100_000), ended: make(chan struct{}), cache: c}
	go func() {
		defer close(l.ended)
		for c := range l.events {
			apply(c)
		}
	}()
	return l
}

func (l *loop) change(int) {
	l.version++
	l.events <- change{l.version}
}

func (l *loop) at() int { return int(l.cache.version.Load()) }

func (l *loop) stop() {
	close(l.events)
	<-l.ended
}

type inTurnDesign struct{ *loop }

func newInTurn(quick, slow func(version int)) design {
	f := &inTurn{cache: &mirror{}, handlers: []func(change){
		func(c change) { quick(c.version) }, func(c change) { slow(c.version) },
	}}
	return inTurnDesign{newLoop(f.cache, f.Apply)}
}

func (d inTurnDesign) waits() int { return len(d.events) }

type queuesDesign struct {
	*loop
	f *queues
}

func newQueues(quick, slow func(version int)) design {
	f := &queues{cache: &mirror{}, handlers: []*handlerQueue{
		newHandlerQueue(func(c change) { quick(c.version) }), newHandlerQueue(func(c change) { slow(c.version) }),
	}}
	return queuesDesign{newLoop(f.cache, f.Apply), f}
}

func (d queuesDesign) waits() int { return d.f.handlers[1].len() }

func (d queuesDesign) stop() {
	d.loop.stop()
	for _, q := range d.f.handlers {
		q.end()
	}
}

// ours is an informer as a design.
type ours struct {
	*testing.T
	s    *server
	inf  *informer.SharedInformer[*corev1.Pod]
	slow informer.Registration
	end  func()
}

// newOurs begins with objects that are in the cache, so that all changes are updates.
func newOurs(t *testing.T, objects, maxLag int, quick, slow func(version int)) design {
	t.Helper()
	d := ours{T: t, s: newServer()}
	for n := range objects {
		d.s.put(fmt.Sprint("pod-", n))
	}
	d.inf, d.end = start(t, d.s)
	handler := func(tell func(version int)) informer.Handler[*corev1.Pod] {
		return informer.Handler[*corev1.Pod]{OnUpdate: func(_, p *corev1.Pod) { tell(versionOf(p) - objects) }}
	}
	for name, h := range map[string]informer.Handler[*corev1.Pod]{"quick": handler(quick), "slow": handler(slow)} {
		r, err := d.inf.AddHandler(h, informer.HandlerOptions{Name: name, MaxLag: maxLag})
		if err != nil {
			t.Fatal(err)
		}
		if name == "slow" {
			d.slow = r
		}
	}
	synctest.Wait()
	return d
}

func (d ours) change(object int) { d.s.put(fmt.Sprint("pod-", object)) }

func (d ours) at() int {
	version, err := strconv.Atoi(d.inf.ResourceVersion())
	if err != nil {
		d.Fatal(err)
	}
	return version - d.inf.Indexer().Len()
}

func (d ours) waits() int { return int(d.slow.Stats().Pending) }

func (d ours) stop() { d.end() }

// start runs an informer of the server until the returned function is called.
func start(t *testing.T, s *server) (inf *informer.SharedInformer[*corev1.Pod], stop func()) {
	t.Helper()
	inf = informer.NewSharedInformer(s, informer.Options[*corev1.Pod]{Resource: "pods"})
	stop = run(t, inf)
	synctest.Wait()
	return inf, stop
}

// run runs an informer until the returned function is called.
func run(t *testing.T, inf *informer.SharedInformer[*corev1.Pod]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	var running sync.WaitGroup
	running.Go(func() { _ = inf.Run(ctx) }) // It was not called before.
	return func() {
		cancel()
		running.Wait()
	}
}

func versionOf(p *corev1.Pod) int {
	version, _ := strconv.Atoi(p.ResourceVersion)
	return version
}

// A line is what happened at some time. Rank orders lines of one moment.
type line struct {
	at   time.Duration
	rank int
	text string
}

// A story is what one design did with five changes, a fifth of a second apart. The slow handler takes a second.
type story struct {
	mu    sync.Mutex
	began time.Time
	lines []line
	// calls are those of the slow handler, marks those of the quick one.
	calls []figure.Span
	quick []figure.Mark
	last  time.Duration
}

func (s *story) note(rank int, format string, args ...any) {
	s.lines = append(s.lines, line{time.Since(s.began), rank, fmt.Sprintf(format, args...)})
}

func (s *story) hearQuick(version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(1, "quick hears of %d", version)
	s.quick = append(s.quick, figure.Mark{
		At: time.Since(s.began).Seconds(), Label: fmt.Sprint(version), Class: figure.Good,
	})
	s.last = time.Since(s.began)
}

func (s *story) hearSlow(version int) {
	s.mu.Lock()
	from := time.Since(s.began).Seconds()
	s.note(2, "slow hears of %d, and works for a second", version)
	s.calls = append(s.calls, figure.Span{From: from, To: from + 1, Label: fmt.Sprint(version), Class: figure.A})
	s.mu.Unlock()
	time.Sleep(time.Second)
}

func tell(t *testing.T, begin func(t *testing.T, quick, slow func(version int)) design) *story {
	t.Helper()
	s := &story{}
	synctest.Test(t, func(t *testing.T) {
		s.began = time.Now()
		d := begin(t, s.hearQuick, s.hearSlow)
		s.began = time.Now()
		for n := 1; n <= 5; n++ {
			time.Sleep(200 * time.Millisecond)
			d.change(0)
			synctest.Wait()
			s.mu.Lock()
			s.note(0, "the server is at %d, the cache at %d", n, d.at())
			s.mu.Unlock()
		}
		time.Sleep(10 * time.Second)
		d.stop()
	})
	slices.SortStableFunc(s.lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank))
	})
	return s
}

func (s *story) String() string {
	var b strings.Builder
	for _, l := range s.lines {
		fmt.Fprintf(&b, "%.1fs  %s\n", l.at.Seconds(), l.text)
	}
	return b.String()
}

func inTurnStory(t *testing.T) *story {
	return tell(t, func(_ *testing.T, quick, slow func(int)) design { return newInTurn(quick, slow) })
}

func queuesStory(t *testing.T) *story {
	return tell(t, func(_ *testing.T, quick, slow func(int)) design { return newQueues(quick, slow) })
}

func ourStory(t *testing.T) *story {
	return tell(t, func(t *testing.T, quick, slow func(int)) design { return newOurs(t, 1, 2, quick, slow) })
}

func TestChapter06InTurn(t *testing.T) {
	s := inTurnStory(t)
	if s.last < 4*time.Second {
		t.Errorf("the quick handler heard the last change after %v", s.last)
	}
	book.Trace(t, page, s.String())
}

func TestChapter06Log(t *testing.T) {
	s := ourStory(t)
	if s.last > time.Second || len(s.calls) != 2 {
		t.Errorf("the quick handler heard the last change after %v, and the slow one was called %d times",
			s.last, len(s.calls))
	}
	book.Trace(t, page, s.String())
}

func TestChapter06Designs(t *testing.T) {
	panel := func(heading string, s *story) figure.Panel {
		remark, class := fmt.Sprintf("quick hears of 5 after %.1f s", s.last.Seconds()), figure.Good
		if s.last > time.Second {
			class = figure.Bad
		}
		return figure.Panel{Heading: heading, Remark: remark, RemarkClass: class, Lanes: []figure.Lane{
			{Name: "quick", Marks: s.quick}, {Name: "slow", Spans: s.calls},
		}}
	}
	book.Figure(t, "06-designs", figure.TimeChart{
		Title: "A quick handler and a slow one",
		Desc: "Five changes come in a second. If handlers are called in turn, the quick one hears of the last " +
			"after four seconds. With a queue each it hears of it at once, and the slow one works for five seconds. " +
			"With merging the slow one is called twice.",
		Until: 6, Step: 1, Unit: " s",
		Panels: []figure.Panel{
			panel("1  in turn", inTurnStory(t)),
			panel("2  a queue for each", queuesStory(t)),
			panel("3  one log, and merging for those who lag", ourStory(t)),
		},
	}.Draw())
}

// TestChapter06Storm: 10,000 changes of 100 objects while the slow handler is stuck.
func TestChapter06Storm(t *testing.T) {
	const changes, objects = 10_000, 100
	table := "| | the cache is at | quick has heard | waiting for the one that is stuck |\n|---|---|---|---|\n"
	row := func(name string, begin func(t *testing.T, quick, slow func(int)) design) (at, heard, waits int) {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			var calls atomic.Int64
			d := begin(t, func(int) { calls.Add(1) }, func(int) { <-release })
			for n := range changes {
				d.change(n % objects)
				synctest.Wait()
			}
			at, heard, waits = d.at(), int(calls.Load()), d.waits()
			table += fmt.Sprintf("| %s | %d | %d | %d |\n", name, at, heard, waits)
			close(release)
			d.stop()
		})
		return at, heard, waits
	}
	_, heard, _ := row("in turn", func(_ *testing.T, quick, slow func(int)) design { return newInTurn(quick, slow) })
	_, _, queued := row("a queue for each",
		func(_ *testing.T, quick, slow func(int)) design { return newQueues(quick, slow) })
	at, all, waits := row("one log, merged after 64 batches",
		func(t *testing.T, quick, slow func(int)) design { return newOurs(t, objects, 0, quick, slow) })
	if heard != 1 || queued < changes-2 || at != changes || all != changes || waits > objects+64 {
		t.Errorf("the designs do not differ:\n%s", table)
	}
	book.Block(t, page, table)
}

// TestChapter06Cursors draws where three handlers stand in the log.
func TestChapter06Cursors(t *testing.T) {
	const batches = 6
	var rows [][]figure.Cell
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		inf, stop := start(t, s)
		release := make(chan struct{})
		var handlers []informer.Registration
		add := func(name string, maxLag int, work func(version int)) {
			r, err := inf.AddHandler(informer.Handler[*corev1.Pod]{
				OnUpdate: func(_, p *corev1.Pod) { work(versionOf(p) - 1) },
			}, informer.HandlerOptions{Name: name, MaxLag: maxLag})
			if err != nil {
				t.Fatal(err)
			}
			handlers = append(handlers, r)
		}
		add("quick", 0, func(int) {})
		add("slow", 0, func(version int) {
			if version == 3 {
				<-release
			}
		})
		add("stuck, MaxLag 2", 2, func(int) { <-release })
		synctest.Wait()
		for range batches {
			s.put("a")
			synctest.Wait()
		}
		for _, r := range handlers {
			rows = append(rows, cursorRow(r.Stats(), batches))
		}
		close(release)
		stop()
	})
	if rows[0][batches].Text != "told" || rows[1][3].Text != "is told" || rows[2][2].Text != "merged" {
		t.Errorf("the handlers stand at %v", rows)
	}
	head := []string{"batch of the log"}
	for n := 1; n <= batches; n++ {
		head = append(head, fmt.Sprint(n))
	}
	book.Figure(t, "06-cursors", figure.Table{
		Title: "Where three handlers stand in the log",
		Desc: "Of six batches the quick handler was told all. The slow one is being told the third, and the rest " +
			"waits in the log. The one that is stuck is being told the first, and the rest was merged for it.",
		First: 150, Head: head, Rows: rows,
	}.Draw())
}

// cursorRow is one handler of the figure. The first call is the initial add, which is no batch.
func cursorRow(s informer.HandlerStats, batches int) []figure.Cell {
	row := []figure.Cell{{Text: s.Name}}
	calls := int(s.Delivered) - 1
	for n := 1; n <= batches; n++ {
		cell := figure.Cell{Text: "waits", Class: figure.A}
		switch {
		case n == calls && s.Running > 0:
			cell = figure.Cell{Text: "is told", Class: figure.Lit}
		case n <= calls:
			cell = figure.Cell{Text: "told"}
		case s.Merged > 0:
			cell = figure.Cell{Text: "merged", Class: figure.B}
		}
		row = append(row, cell)
	}
	return row
}
