package informer

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"text/tabwriter"
	"time"

	"github.com/flyball-dev/flyball/internal/heapsize"
	"github.com/flyball-dev/flyball/internal/versions"
)

// soakSize is the extent of a soak.
type soakSize struct {
	objects, perSecond int
	lasts, sampled     time.Duration
}

// TestSoak keeps an informer busy. Objects change all the time, also while no watch is open. Watches are cut every
// second. Every ten seconds the history is forgotten behind a watch that was just cut, so that everything must be
// listed again. Of ten handlers one is stuck and one is slow. In the end the cache and each handler have exactly the
// server's objects, the heap has never exceeded its bound, and no goroutine is left.
//
// It takes seconds. FLYBALL_SOAK=10m makes it that long in virtual time, with 100,000 objects and 5,000 changes per
// second.
func TestSoak(t *testing.T) {
	size := soakSize{objects: 3000, perSecond: 1000, lasts: 60 * time.Second, sampled: 20 * time.Second}
	if long := os.Getenv("FLYBALL_SOAK"); long != "" {
		lasts, err := time.ParseDuration(long)
		if err != nil {
			t.Fatal(err)
		}
		size = soakSize{objects: 100_000, perSecond: 5000, lasts: lasts, sampled: 30 * time.Second}
	}
	for name, stream := range map[string]bool{"lists": false, "streamed lists": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newSoak(t, size, stream).run() })
		})
	}
}

// soak is one run.
type soak struct {
	t      *testing.T
	size   soakSize
	server *chronicle
	inf    *SharedInformer[object]
	views  []*soakView
	// gate blocks the stuck handler; it is closed in the end.
	gate chan struct{}
	// baseline is the heap after the sync; peak is the largest sample.
	baseline, peak int
	watermark      string
	table          strings.Builder
	rows           *tabwriter.Writer
}

func newSoak(t *testing.T, size soakSize, stream bool) *soak {
	s := &soak{t: t, size: size, server: newChronicle(size.objects, 7), gate: make(chan struct{})}
	s.rows = tabwriter.NewWriter(&s.table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(s.rows,
		"time\twrites\tevents\twatches\tlists\tobjects\tgoroutines\theap MiB\tstuck: pending\tmerged\t")
	s.inf = NewSharedInformer[object](s.server, Options[object]{
		Resource: "pods", StreamLists: stream,
		// With the usual delays it would be disconnected most of the time, because time is short here.
		Backoff: Backoff{
			Min: 100 * time.Millisecond, Max: 2 * time.Second, Reset: time.Second,
			Rand: func() float64 { return 0.5 },
		},
	})
	for i := range 10 {
		v := &soakView{versions: make([]int32, size.objects), uids: make([]int32, size.objects)}
		switch i {
		case 0:
			v.before = func() { <-s.gate }
		case 1:
			v.before = func() {
				if v.calls.Load()%int64(size.perSecond) == 0 {
					time.Sleep(700 * time.Millisecond)
				}
			}
		}
		v.reg = must(s.inf.AddHandler(v.handler(), HandlerOptions{Name: "handler" + strconv.Itoa(i)}))
		s.views = append(s.views, v)
	}
	return s
}

func (s *soak) run() {
	goroutines := bubbled()
	stop := start(s.t, s.inf.Run)
	must(0, s.inf.WaitForSync(s.t.Context()))
	synctest.Wait()
	s.baseline = heapsize.Now()
	s.sample(0)
	for began := time.Now(); time.Since(began) < s.size.lasts; {
		s.second()
		if at := time.Since(began); at%(10*time.Second) == 0 {
			s.server.compact(at%(20*time.Second) == 0)
		}
		if at := time.Since(began); at%s.size.sampled == 0 {
			s.sample(at)
		}
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	s.sample(s.size.lasts + 2*time.Minute)
	close(s.gate)
	time.Sleep(time.Hour) // The slow handler takes its time.
	synctest.Wait()
	s.check()
	stop()
	synctest.Wait()
	if left := bubbled(); left != goroutines {
		s.t.Errorf("%d goroutines, %d before", left, goroutines)
	}
	must(0, s.rows.Flush())
	s.t.Logf("\n%s\n%+v", s.table.String(), s.inf.Stats())
}

// second is a second with many changes and a cut.
func (s *soak) second() {
	const bursts = 50
	cutAt := s.server.rand.IntN(bursts)
	for burst := range bursts {
		for range s.size.perSecond / bursts {
			s.server.change()
		}
		if burst == cutAt {
			s.server.cut(s.server.anyCut())
		}
		time.Sleep(time.Second / bursts)
	}
}

// sample takes a sample, and checks what must hold at all times.
func (s *soak) sample(at time.Duration) {
	synctest.Wait()
	h := heapsize.Now()
	s.peak = max(s.peak, h)
	if limit := 3*s.baseline + 8<<20; h > limit {
		s.t.Errorf("after %v: the heap is %d MiB, at first it was %d", at, h>>20, s.baseline>>20)
	}
	st := s.inf.Stats()
	if versions.Earlier(st.ResourceVersion, s.watermark) {
		s.t.Errorf("after %v: the watermark went from %s to %s", at, s.watermark, st.ResourceVersion)
	}
	s.watermark = st.ResourceVersion
	stuck := st.Handlers[0]
	// The batch in which it is stuck, a deletion and an addition for each object, and what may wait unmerged.
	if limit := int64(3*s.size.objects + 4096); stuck.Pending > limit {
		s.t.Errorf("after %v: %d notifications pending for the stuck handler", at, stuck.Pending)
	}
	fmt.Fprintf(s.rows, "%v\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t%d\t%d\t\n", at, s.server.version-s.size.objects, st.Events,
		st.Watches, st.Lists, st.Objects,
		bubbled(), float64(h)/(1<<20), stuck.Pending, stuck.Merged)
}

// check compares the cache, and what each handler received, with the server.
func (s *soak) check() {
	want, live := s.server.at(), 0
	for i, e := range want {
		o, found := s.inf.Get("default", "o"+strconv.Itoa(i))
		switch {
		case e.version == 0 && found:
			s.t.Errorf("the cache holds %s, the server does not", show(o))
		case e.version != 0 && (!found || o.ResourceVersion != strconv.Itoa(int(e.version)) || o.UID != e.made().UID):
			s.t.Errorf("the cache holds %v for %s", o, show(e.made()))
		}
		if e.version != 0 {
			live++
		}
		for n, v := range s.views {
			if v.versions[i] != e.version || v.uids[i] != e.uid {
				s.t.Errorf("handler %d knows o%d@%d/%d, the server has @%d/%d", n, i, v.versions[i], v.uids[i],
					e.version, e.uid)
			}
		}
		if s.t.Failed() {
			return // One error is enough.
		}
	}
	if st := s.inf.Stats(); st.Objects != int64(live) || st.ResourceVersion != strconv.Itoa(s.server.version) ||
		st.Rebuilds > 0 || st.Relists < int64(s.size.lasts/(10*time.Second)) {
		s.t.Errorf("%d objects at %d: %+v", live, s.server.version, st)
	}
	for n, v := range s.views {
		if st := v.reg.Stats(); v.wrong != "" || st.Pending > 0 || st.Panics > 0 || !v.reg.HasSynced() {
			s.t.Errorf("handler %d: %s, %+v", n, v.wrong, st)
		}
		// A list after a pause may bring more changes at once than may wait for an idle handler.
		if st := v.reg.Stats(); n > 1 && st.Merged > st.Delivered/100 {
			s.t.Errorf("handler %d is quick, and was not told all: %+v", n, st)
		}
	}
}

// bubbled counts the goroutines of the test's bubble. Those of other tests may end at any time.
func bubbled() int {
	stacks := make([]byte, 1<<20)
	n := 0
	for g := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
		header, _, _ := bytes.Cut(g, []byte("\n"))
		if bytes.Contains(header, []byte("synctest bubble")) {
			n++
		}
	}
	return n
}

// soakView is the state of one handler: version and UID of each object by number, 0 if there is none.
type soakView struct {
	reg            Registration
	versions, uids []int32
	calls          atomic.Int64
	// wrong is the first call that contradicts an earlier one.
	wrong string
	// before, if not nil, runs at the beginning of each call.
	before func()
}

func (v *soakView) handler() Handler[object] {
	return Handler[object]{
		OnAdd: func(o object, _ bool) {
			i := v.called(o)
			v.contradict(v.versions[i] != 0, "add", o)
			v.versions[i], v.uids[i] = numbers(o)
		},
		OnUpdate: func(old, o object) {
			i := v.called(o)
			was, _ := numbers(old)
			is, uid := numbers(o)
			v.contradict(v.versions[i] != was || v.uids[i] != uid || is <= was, "update", o)
			v.versions[i] = is
		},
		OnDelete: func(d Deleted[object]) {
			i := v.called(d.Object)
			_, uid := numbers(d.Object)
			v.contradict(v.versions[i] == 0 || v.uids[i] != uid, "delete", d.Object)
			v.versions[i], v.uids[i] = 0, 0
		},
	}
}

func (v *soakView) called(o object) int {
	v.calls.Add(1)
	if v.before != nil {
		v.before()
	}
	return int(number32(o.Name[1:]))
}

func (v *soakView) contradict(wrong bool, what string, o object) {
	if wrong && v.wrong == "" {
		v.wrong = what + " " + show(o)
	}
}

func numbers(o object) (version, uid int32) {
	return number32(o.ResourceVersion), number32(string(o.UID))
}

func number32(s string) int32 { return int32(must(strconv.Atoi(s))) }
