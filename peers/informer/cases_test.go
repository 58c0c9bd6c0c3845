package informer

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// The tests of this file pin what client-go v0.37.2 does in those cases of docs/informer-cases.md in which Flyball does
// otherwise. What they assert is not what anybody should want.

// unhurried keeps the error handlers of the process, which sleep by the clock on the wall, out of a bubble's virtual
// time.
func unhurried(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
}

// theirs starts client-go's informer of lw with a handler, in virtual time, and gives both to f.
func theirs(t *testing.T, lw cache.ListerWatcher, f func(t *testing.T, inf cache.SharedIndexInformer, told *recorder)) {
	t.Helper()
	inf := upstream.newInformer(lw, &corev1.Pod{}, 0, nil)
	told, _ := handled(t, inf)
	stop := running(t, inf)
	defer stop()
	synctest.Wait()
	f(t, inf, told)
}

// version is the resource version of a pod in the cache; "" when it holds none.
func version(t *testing.T, inf cache.SharedIndexInformer, name string) string {
	t.Helper()
	obj, found, err := inf.GetStore().GetByKey("a/" + name)
	must(t, err)
	if !found {
		return ""
	}
	return obj.(*corev1.Pod).ResourceVersion
}

// odd is a source with something between it and the informer.
type odd struct {
	*source
	list  func(metav1.ListOptions) (runtime.Object, error)
	watch func(metav1.ListOptions) (watch.Interface, error)
}

func (o *odd) List(opts metav1.ListOptions) (runtime.Object, error) {
	if o.list != nil {
		return o.list(opts)
	}
	return o.source.List(opts)
}

func (o *odd) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	if o.watch != nil {
		return o.watch(opts)
	}
	return o.source.Watch(opts)
}

// fault sends an ERROR event to all watches.
func (s *source) fault(err *apierrors.StatusError) {
	s.inject(watch.Error, &err.ErrStatus)
	s.cut()
}

// counted tells how many of the requests begin with what.
func counted(requests []string, what string) int {
	n := 0
	for _, r := range requests {
		if strings.HasPrefix(r, what) {
			n++
		}
	}
	return n
}

func (s *source) current(name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[name].DeepCopy()
}

// TestCaseDuplicates (2): handlers get each event twice, and deletions of objects that they never got.
func TestCaseDuplicates(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one")
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			equal(t, "initial", told.take(), []string{"add one true"})
			p := src.current("one")
			src.inject(watch.Modified, p)
			src.inject(watch.Added, p)
			equal(t, "repeated", told.take(), []string{"update one 2->2", "update one 2->2"})
			src.remove("one")
			p.ResourceVersion = "3"
			src.inject(watch.Deleted, p)
			src.inject(watch.Deleted, pod("a", "never", "3"))
			equal(t, "deleted", told.take(), []string{"delete one 3", "delete one 3", "delete never 3"})
		})
	})
}

// TestCasePast (3, 8): an event from the past takes the cache back, a bookmark from the past the position.
func TestCasePast(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one")
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			old := src.current("one")
			src.put("one")
			synctest.Wait()
			equal(t, "forward", told.take(), []string{"add one true", "update one 2->3"})
			src.inject(watch.Modified, old)
			equal(t, "back", told.take(), []string{"update one 3->2"})
			if v, at := version(t, inf, "one"), inf.LastSyncResourceVersion(); v != "2" || at != "2" {
				t.Errorf("the cache holds @%s, the position is %s", v, at)
			}
			src.put("one")
			src.put("two")
			src.inject(watch.Bookmark, pod("", "", "3"))
			equal(t, "forward", told.take(), []string{"update one 2->4", "add two false"})
			if at := inf.LastSyncResourceVersion(); at != "3" {
				t.Errorf("position %s", at)
			}
			_ = src.asked()
			time.Sleep(time.Minute)
			src.cut()
			equal(t, "seen again", told.take(), []string{"update one 4->4", "update two 5->5"})
			equal(t, "asked", src.asked(), []string{`watch "3"`})
		})
	})
}

// TestCaseUIDs (5): an object deleted and created again in a gap is an update.
func TestCaseUIDs(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one")
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			_ = told.take()
			src.gap(func() { src.removeLocked("one"); src.putLocked("one") })
			time.Sleep(time.Minute)
			equal(t, "told", told.take(), []string{"update one 2->4 of another UID"})
		})
	})
}

// TestCaseStaleReplica (9): the list of a replica that lags takes the cache back.
func TestCaseStaleReplica(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := &odd{source: newSource(false, "one")}
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			then, err := src.source.List(metav1.ListOptions{})
			must(t, err)
			src.put("one")
			src.put("two")
			_ = told.take()
			src.list = func(metav1.ListOptions) (runtime.Object, error) { return then, nil }
			src.gap(func() { src.removeLocked("two") })
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if v, at := version(t, inf, "one"), inf.LastSyncResourceVersion(); v != "2" || at != "2" {
				t.Errorf("the cache holds @%s, the position is %s", v, at)
			}
		})
	})
}

// TestCaseRelist (10): every handler gets an update for each object of a list, even if the object is unchanged.
func TestCaseRelist(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one", "two")
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			_ = told.take()
			src.gap(func() { src.putLocked("three") })
			time.Sleep(time.Minute)
			equal(t, "told", sorted(told.take()), []string{"add three false", "update one 2->2", "update two 3->3"})
		})
	})
}

// TestCaseClosedAtOnce (12): every watch that is closed at once costs a list.
func TestCaseClosedAtOnce(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := &odd{source: newSource(false, "one")}
		src.watch = func(o metav1.ListOptions) (watch.Interface, error) {
			w, err := src.source.Watch(o)
			src.cut()
			return w, err
		}
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			time.Sleep(time.Hour)
			asked := src.asked()
			if lists, watches := counted(asked, "list"), counted(asked, "watch"); lists < 60 || lists != watches {
				t.Errorf("in an hour: %d lists, %d watches", lists, watches)
			}
			if n := len(told.take()); n < 60 {
				t.Errorf("told %d times of a pod that did not change", n)
			}
		})
	})
}

// TestCaseHalfOpen (14): a connection that no longer delivers anything is kept for ever.
func TestCaseHalfOpen(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one")
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			src.mu.Lock()
			src.open = nil
			src.mu.Unlock()
			src.put("one")
			_, _ = told.take(), src.asked()
			time.Sleep(24 * time.Hour)
			equal(t, "asked", src.asked(), nil)
			equal(t, "told", told.take(), nil)
		})
	})
}

// TestCaseErrorEvents (15): a 429 in an open watch is retried before the server wants to be asked; each 500 is a list.
func TestCaseErrorEvents(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one")
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			_ = src.asked()
			time.Sleep(5 * time.Minute)
			src.fault(apierrors.NewTooManyRequests("slow down", 40))
			time.Sleep(30 * time.Second)
			equal(t, "after 429", src.asked(), []string{`watch "2"`})
			src.fault(apierrors.NewInternalError(errors.New("etcd is not there")))
			time.Sleep(30 * time.Second)
			equal(t, "after 500", src.asked(), []string{`list "2"`, `watch "2"`})
		})
	})
}

// TestCaseUnapplied (16): an object that cannot be transformed is left out, and the position goes on.
func TestCaseUnapplied(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one")
		inf := upstream.newInformer(src, &corev1.Pod{}, 0, nil)
		broken := true
		must(t, inf.SetTransform(func(obj any) (any, error) {
			if p, ok := obj.(*corev1.Pod); ok && p.Name == "two" && broken {
				return nil, errors.New("cannot transform")
			}
			return obj, nil
		}))
		defer running(t, inf)()
		synctest.Wait()
		src.put("two")
		src.inject(watch.Modified, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other", ResourceVersion: "4"}})
		synctest.Wait()
		broken = false
		time.Sleep(24 * time.Hour)
		if v, at := version(t, inf, "two"), inf.LastSyncResourceVersion(); v != "" || at != "3" {
			t.Errorf("the cache holds @%s, the position is %s", v, at)
		}
	})
}

// TestCaseUnknownEvent (17): an event of an unknown type is skipped.
func TestCaseUnknownEvent(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one")
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			_, _ = told.take(), src.asked()
			src.inject("RENAMED", pod("a", "one", "9"))
			time.Sleep(time.Hour)
			equal(t, "asked", src.asked(), nil)
			if v, at := version(t, inf, "one"), inf.LastSyncResourceVersion(); v != "2" || at != "9" {
				t.Errorf("the cache holds @%s, the position is %s", v, at)
			}
		})
	})
}

// TestCaseEndlessStream (22): a streamed list that is never said to be complete is waited for, for ever.
func TestCaseEndlessStream(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := &odd{source: newSource(true, "one")}
		src.watch = func(o metav1.ListOptions) (watch.Interface, error) {
			src.mu.Lock()
			defer src.mu.Unlock()
			src.requests = append(src.requests, "stream without end")
			c := &connection{of: src.source, events: make(chan watch.Event, 10)}
			c.send(watch.Event{Type: watch.Added, Object: src.pods["one"]})
			return c, nil
		}
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			time.Sleep(24 * time.Hour)
			equal(t, "asked", src.asked(), []string{"stream without end"})
			if inf.HasSynced() {
				t.Error("synced")
			}
		})
	})
}

// TestCaseStop (24): a list under way outlives the informer, if its client is slow to hear of the stop.
func TestCaseStop(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		release, returned := make(chan struct{}), make(chan error, 1)
		inf := upstream.newInformer(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
				<-release
				returned <- ctx.Err()
				return &corev1.PodList{}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return nil, apierrors.NewMethodNotSupported(corev1.Resource("pods"), "watch")
			},
		}, &corev1.Pod{}, 0, nil)
		stop := running(t, inf)
		synctest.Wait()
		stop()
		select {
		case <-returned:
			t.Error("the list ended with the informer")
		default:
		}
		close(release)
		if err := <-returned; !errors.Is(err, context.Canceled) {
			t.Errorf("the list did not hear of the stop: %v", err)
		}
	})
}

// TestCaseRestore (26): after the server's history went back, the cache stays ahead of it.
func TestCaseRestore(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one")
		theirs(t, src, func(t *testing.T, inf cache.SharedIndexInformer, told *recorder) {
			old := src.current("one")
			for range 5 {
				src.put("one")
			}
			src.put("lost")
			_, _ = told.take(), src.asked()
			time.Sleep(time.Minute)
			src.mu.Lock()
			src.rv, src.history, src.pods = 2, nil, map[string]*corev1.Pod{"one": old}
			src.mu.Unlock()
			src.cut()
			time.Sleep(time.Hour)
			equal(t, "asked", src.asked(), []string{`watch "8"`})
			equal(t, "told", told.take(), nil)
			if one, lost := version(t, inf, "one"), version(t, inf, "lost"); one != "7" || lost != "8" {
				t.Errorf("the cache holds one@%s and lost@%s", one, lost)
			}
		})
	})
}

// TestCaseStopInBackoff (24): a streamed list that was refused is waited for, stop or no stop.
func TestCaseStopInBackoff(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(true, "one")
		src.refuseWith(syscall.ECONNREFUSED)
		stop := running(t, upstream.newInformer(src, &corev1.Pod{}, 0, nil))
		synctest.Wait()
		began := time.Now()
		stop() // The first delay; the longest would be a minute.
		if d := time.Since(began); d < 800*time.Millisecond {
			t.Errorf("stopped after %v", d)
		}
	})
}
