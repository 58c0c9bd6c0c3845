package clientgo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	peer "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestMain keeps HandleError from sleeping. HandleError sleeps until a millisecond after the last error, and remembers
// the time of that error for the whole process. In a bubble whose clock is behind that of an earlier bubble, it would
// sleep for the difference.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // The first one logs.
	os.Exit(m.Run())
}

// diary is a store that only records its calls.
type diary struct {
	mu     sync.Mutex // client-go resyncs from a goroutine of its own.
	lines  []string
	refuse error
}

func (d *diary) note(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
	return d.refuse
}

func (d *diary) Add(obj any) error    { return d.note("add %s", obj.(*corev1.Pod).Name) }
func (d *diary) Update(obj any) error { return d.note("update %s", obj.(*corev1.Pod).Name) }
func (d *diary) Delete(obj any) error { return d.note("delete %s", obj.(*corev1.Pod).Name) }
func (d *diary) Resync() error        { return d.note("resync") }

func (d *diary) Replace(objs []any, version string) error {
	return d.note("replace by %d at %s", len(objs), version)
}

func (d *diary) Bookmark(version string) error { return d.note("bookmark %s", version) }

func (d *diary) UpdateResourceVersion(version string) { _ = d.note("at %s", version) }

// listThenWatch lists one pod at version 5, and watches w.
func listThenWatch(w watch.Interface) ListerWatcher {
	return ToListWatcherWithWatchListSemantics(&ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{
				ListMeta: metav1.ListMeta{ResourceVersion: "5"},
				Items:    []corev1.Pod{*pod("one", "4")},
			}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return w, nil },
	}, noStreams{})
}

// runner is what client-go's reflector and ours have in common.
type runner interface {
	RunWithContext(ctx context.Context)
	LastSyncResourceVersion() string
}

// TestReflectorWritesAsClientGos: our reflector and client-go's call the store in the same way.
func TestReflectorWritesAsClientGos(t *testing.T) {
	makes := map[string]func(lw ListerWatcher, s peer.ReflectorStore) runner{
		"client-go": func(lw ListerWatcher, s peer.ReflectorStore) runner {
			return peer.NewNamedReflector("r", lw, &corev1.Pod{}, s, time.Minute)
		},
		"ours": func(lw ListerWatcher, s peer.ReflectorStore) runner {
			return NewNamedReflector("r", lw, &corev1.Pod{}, s, time.Minute)
		},
	}
	want := strings.Join([]string{
		"replace by 1 at 5", "add two", "at 6", "update one", "at 7", "delete two", "at 8", "bookmark 9", "at 9",
		"resync",
	}, "\n")
	for name, make := range makes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, store := watch.NewFakeWithChanSize(10, false), &diary{}
				w.Add(pod("two", "6"))
				w.Modify(pod("one", "7"))
				w.Delete(pod("two", "8"))
				w.Action(watch.Bookmark, pod("", "9"))
				r := make(listThenWatch(w), store)
				ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
				defer stop()
				r.RunWithContext(ctx)
				if got := strings.Join(store.lines, "\n"); got != want {
					t.Errorf("the store was asked to\n%s\nwant\n%s", got, want)
				}
				if got := r.LastSyncResourceVersion(); got != "9" {
					t.Errorf("the reflector is at %q, want 9", got)
				}
			})
		})
	}
}

// TestReflectorFillsAStore: an error of the store is reported and does not stop the rest, and a second run lists anew.
func TestReflectorFillsAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, r := NewNamespaceKeyedIndexerAndReflector(listThenWatch(watch.NewFake()), &corev1.Pod{}, 0)
		r.ShouldResync = func() bool { t.Error("asked without a resync period"); return true }
		for range 2 {
			stop := make(chan struct{})
			time.AfterFunc(time.Second, func() { close(stop) })
			r.Run(stop)
			if keys := store.ListKeys(); len(keys) != 1 || keys[0] != "a/one" {
				t.Fatalf("the store has %v", keys)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, store := watch.NewFakeWithChanSize(2, false), &diary{refuse: errors.New("refused")}
		w.Add(pod("two", "6"))
		w.Add(pod("three", "7"))
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		r := NewReflector(listThenWatch(w), &corev1.Pod{}, store, 0)
		r.Run(stop)
		if got, want := strings.Join(store.lines, ", "),
			"replace by 1 at 5, add two, at 6, add three, at 7"; got != want {
			t.Errorf("a store that refuses everything was asked to %s, want %s", got, want)
		}
	})
	if got := NewReflector(&ListWatch{}, nil, &diary{}, 0).TypeDescription(); got != "<unspecified>" {
		t.Errorf("nil is described as %q", got)
	}
}

// TestReflectorRefusesWhatItWouldIgnore: NewReflectorWithOptions panics if it gets a clock or a backoff. If it ignored
// them, a test could wait for ever.
func TestReflectorRefusesWhatItWouldIgnore(t *testing.T) {
	NewReflectorWithOptions(&ListWatch{}, nil, &diary{}, ReflectorOptions{Clock: clock.RealClock{}})
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "testing/synctest") {
			t.Errorf("the panic is %q", p)
		}
	}()
	NewReflectorWithOptions(&ListWatch{}, nil, &diary{}, ReflectorOptions{Clock: clocktesting.NewFakeClock(time.Now())})
}
