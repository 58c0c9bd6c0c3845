package informer

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/heapsize"
	"github.com/flyball-dev/flyball/internal/versions"
)

// TestCrashOnPanic (case 18): with that policy the process ends, after the log has named handler and object.
func TestCrashOnPanic(t *testing.T) {
	if os.Getenv("FLYBALL_CRASH") != "" {
		s := newServer()
		s.put("a")
		inf := NewSharedInformer[object](s, Options[object]{Panics: handler.CrashOnPanic})
		must(
			inf.AddHandler(Handler[object]{OnAdd: func(object, bool) { panic("no a, please") }},
				HandlerOptions{Name: "picky"}),
		)
		_ = inf.Run(context.Background())
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestCrashOnPanic$")
	child.Env = append(os.Environ(), "FLYBALL_CRASH=1")
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("the process ended with %v:\n%s", err, out)
	}
	for _, want := range []string{"panic: no a, please", `handler="picky"`, `object="default/a"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %s:\n%s", want, out)
		}
	}
}

// TestChurnWithStuckHandlerIsBounded (case 20): while a handler is stuck, every object changes ten times. Two states of
// each are held for the handler, not ten.
func TestChurnWithStuckHandlerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 3000
		s := newServer()
		for i := range objects {
			s.put("pod" + strconv.Itoa(i))
		}
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		gate := make(chan struct{})
		stuck := must(c.inf.AddHandler(Handler[object]{
			OnAdd: func(object, bool) { <-gate }, OnUpdate: func(_, _ object) {},
		}, HandlerOptions{}))
		synctest.Wait()
		_ = c.take()
		s.compact()
		before := heapsize.Now()
		for i := range 10 * objects {
			s.put("pod" + strconv.Itoa(i%objects))
			if i%100 == 99 {
				synctest.Wait()
				_ = c.take()
				s.compact()
			}
		}
		if after := heapsize.Now(); after > 3*before {
			t.Errorf("%d bytes before, %d after", before, after)
		}
		if st := stuck.Stats(); st.Pending > 2*objects {
			t.Errorf("%+v", st)
		}
		close(gate)
		synctest.Wait()
		if st := stuck.Stats(); st.Pending > 0 {
			t.Errorf("%+v", st)
		}
	})
}

// bulk is a source of large objects. It holds none itself, so all that are alive belong to the informer.
type bulk struct {
	objects int
	// version is the version of each object and of the list.
	version int
	// lists counts lists. during runs now and then while one is yielded.
	lists  int
	during func()
	// expire is received by Next and sent to by the test. It is never closed.
	expire chan struct{}
}

func (b *bulk) List(_ context.Context, _ listwatch.ListOptions,
	yield func(object) error,
) (listwatch.ListResult, error) {
	b.lists++
	for i := range b.objects {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "o" + strconv.Itoa(i), UID: "u", ResourceVersion: strconv.Itoa(b.version),
			Annotations: map[string]string{"weight": strings.Repeat("x", 8192)},
		}}
		if err := yield(o); err != nil {
			return listwatch.ListResult{}, err
		}
		if i%(b.objects/4) == 0 || i == b.objects-1 {
			b.during()
		}
	}
	return listwatch.ListResult{ResourceVersion: strconv.Itoa(b.version)}, nil
}

func (b *bulk) Watch(context.Context, listwatch.WatchOptions) (listwatch.Watch[object], error) {
	return b, nil
}

func (b *bulk) Next(ctx context.Context) (listwatch.Event[object], error) {
	select {
	case <-b.expire:
		return listwatch.Event[object]{}, errExpired
	case <-ctx.Done():
		return listwatch.Event[object]{}, ctx.Err()
	}
}

func (b *bulk) Close() error { return nil }

// TestRelistPeak (case 20): a relist without changes needs no memory. If everything has changed, it needs memory for
// the new states beside the old ones.
func TestRelistPeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var peak int
		b := &bulk{objects: 2000, version: 1, during: func() {}, expire: make(chan struct{})}
		inf := NewSharedInformer[object](b, Options[object]{})
		empty := heapsize.Now()
		defer start(t, inf.Run)()
		synctest.Wait()
		live := heapsize.Now() - empty
		b.during = func() { peak = max(peak, heapsize.Now()-empty) }
		relist := func() float64 {
			peak = 0
			b.expire <- struct{}{}
			time.Sleep(time.Minute)
			synctest.Wait()
			return float64(peak) / float64(live)
		}
		if x := relist(); x > 1.2 {
			t.Errorf("unchanged: peak is %.2f of what lives", x)
		}
		b.version++
		if x := relist(); x > 2.2 {
			t.Errorf("all changed: peak is %.2f of what lives", x)
		}
		if b.lists != 3 || inf.ResourceVersion() != "2" {
			t.Errorf("%d lists, watermark %s", b.lists, inf.ResourceVersion())
		}
	})
}

// TestHandlerDuringInitialList (case 21): a handler that joins or leaves during the first list is served like one that
// was there before.
func TestHandlerDuringInitialList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		s.put("b")
		answer := make(chan struct{})
		c, stop := followed(t, s, &proxied{server: s, listed: func() { <-answer }}, Options[object]{})
		defer stop()
		joined, leaving := &recorder{}, &recorder{}
		reg := must(c.inf.AddHandler(joined.handler(), HandlerOptions{}))
		gone := must(c.inf.AddHandler(leaving.handler(), HandlerOptions{}))
		must(0, c.inf.RemoveHandler(t.Context(), gone))
		if reg.HasSynced() {
			t.Error("synced before the list was there")
		}
		close(answer)
		want := []string{"add a@2/u1 (initial)", "add b@3/u2 (initial)"}
		c.told(t, want...)
		if got := joined.take(); !slices.Equal(got, want) || !reg.HasSynced() {
			t.Errorf("the one that joined was told %q, synced %v", got, reg.HasSynced())
		}
		if got := leaving.take(); got != nil {
			t.Errorf("the one that left was told %q", got)
		}
	})
}

// TestJoinAndLeaveInStorm (case 21): handlers come and go while objects change. Each gets the cache once and then each
// change once, and no removal waits for another handler.
func TestJoinAndLeaveInStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		c, stop := followed(t, s, nil, Options[object]{})
		defer stop()
		gate := make(chan struct{})
		must(c.inf.AddHandler(Handler[object]{OnAdd: func(object, bool) { <-gate }}, HandlerOptions{}))
		defer close(gate)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 2000 {
				s.put("pod" + strconv.Itoa(i%20))
				if i%7 == 0 {
					s.remove("pod" + strconv.Itoa(i%20))
				}
			}
		}()
		var stay []*ledger
		for i := range 200 {
			l := &ledger{t: t, objects: map[string]object{}}
			l.reg = must(c.inf.AddHandler(l.handler(), HandlerOptions{}))
			<-l.reg.Synced()
			if i%2 == 0 {
				stay = append(stay, l)
				continue
			}
			must(0, c.inf.RemoveHandler(t.Context(), l.reg))
			for key, o := range l.objects {
				held, found := c.inf.Get("", key)
				if found && versions.Earlier(held.ResourceVersion, o.ResourceVersion) {
					t.Errorf("told of %s, the cache holds %s", show(o), show(held))
				}
			}
		}
		<-done
		synctest.Wait()
		if n := len(c.inf.Stats().Handlers); n != 2+len(stay) {
			t.Errorf("%d handlers left", n)
		}
		held := map[string]object{}
		for o := range c.inf.All() {
			held[Key(o)] = o
		}
		for _, l := range stay {
			if !maps.Equal(l.objects, held) {
				t.Errorf("%s was told %v, the cache holds %v", l.reg.Name(), l.objects, held)
			}
		}
	})
}

// TestHandlersJoinBetweenBatches (case 21): no handler joins between the moment when the cache shows a batch and the
// moment when the handlers get it. It would receive the batch twice or, in the other order, never.
func TestHandlersJoinBetweenBatches(t *testing.T) {
	s := newServer()
	inf := NewSharedInformer[object](s, Options[object]{})
	inf.joining.Lock()
	joined, applied := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		must(inf.AddHandler(Handler[object]{}, HandlerOptions{}))
	}()
	go func() {
		defer close(applied)
		inf.process(quiet(t), []deltafifo.Delta[object]{{Type: deltafifo.Replace, ResourceVersion: "1"}}, nil)
	}()
	for range 1000 {
		runtime.Gosched()
	}
	if n := len(inf.Stats().Handlers); n > 0 || inf.HasSynced() {
		t.Errorf("%d handlers joined, batch applied %v", n, inf.HasSynced())
	}
	inf.joining.Unlock()
	<-joined
	<-applied
}

// TestStopDuringList (case 24): a running list is given up at once, and nothing is left behind.
func TestStopDuringList(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			inf := NewSharedInformer[object](&hanging{}, Options[object]{StreamLists: stream})
			stop := start(t, inf.Run)
			synctest.Wait()
			before := time.Now()
			stop() // The bubble would report goroutines that are left.
			if d := time.Since(before); d > 0 {
				t.Errorf("stopped after %v", d)
			}
		})
	}
}

// hanging is a source that never answers.
type hanging struct{}

func (*hanging) List(ctx context.Context, _ listwatch.ListOptions, _ func(object) error) (listwatch.ListResult, error) {
	<-ctx.Done()
	return listwatch.ListResult{}, ctx.Err()
}

func (*hanging) Watch(ctx context.Context, _ listwatch.WatchOptions) (listwatch.Watch[object], error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
