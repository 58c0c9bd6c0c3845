package informer

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// TestCasesAlike has the cases in which both behave alike.
func TestCasesAlike(t *testing.T) {
	unhurried(t)
	begin := func(t *testing.T, s side,
		lw cache.ListerWatcher,
	) (inf cache.SharedIndexInformer, told *recorder, stop func()) {
		inf = s.newInformer(lw, &corev1.Pod{}, 0, nil)
		told, _ = handled(t, inf)
		stop = running(t, inf)
		synctest.Wait()
		return inf, told, stop
	}
	t.Run("1: order", func(t *testing.T) {
		both(t, func(t *testing.T, s side) {
			src := newSource(false)
			inf, told, stop := begin(t, s, src)
			defer stop()
			_, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
				if p := obj.(*corev1.Pod); version(t, inf, p.Name) < p.ResourceVersion {
					t.Errorf("told of @%s before the cache had it", p.ResourceVersion)
				}
			}})
			must(t, err)
			for range 3 {
				src.put("one")
			}
			src.put("two")
			equal(t, "told", told.take(),
				[]string{"add one false", "update one 2->3", "update one 3->4", "add two false"})
		})
	})
	t.Run("4: deletion unseen", func(t *testing.T) {
		both(t, func(t *testing.T, s side) {
			src := newSource(false, "one")
			_, told, stop := begin(t, s, src)
			defer stop()
			_ = told.take()
			src.gap(func() { src.removeLocked("one") })
			time.Sleep(time.Minute)
			equal(t, "told", told.take(), []string{"tombstone a/one 2"})
		})
	})
	t.Run("6: between list and watch", func(t *testing.T) {
		both(t, func(t *testing.T, s side) {
			src := &odd{source: newSource(false, "one")}
			first := true
			src.list = func(o metav1.ListOptions) (runtime.Object, error) {
				list, err := src.source.List(o)
				if first {
					first = false
					src.remove("one")
					src.put("two")
				}
				return list, err
			}
			_, told, stop := begin(t, s, src)
			defer stop()
			equal(t, "told", told.take(), []string{"add one true", "delete one 3", "add two false"})
		})
	})
	t.Run("7, 13: bookmark and resume", func(t *testing.T) {
		both(t, func(t *testing.T, s side) {
			src := newSource(false, "one")
			_, told, stop := begin(t, s, src)
			defer stop()
			_ = told.take()
			time.Sleep(time.Minute)
			src.bookmark()
			synctest.Wait()
			src.mu.Lock()
			src.compacted, src.history = src.rv, nil
			src.mu.Unlock()
			_ = src.asked()
			src.cutInTime()
			time.Sleep(time.Minute)
			equal(t, "asked", src.asked(), []string{`watch "3"`})
			equal(t, "told", told.take(), nil)
		})
	})
	t.Run("11: too large", func(t *testing.T) {
		both(t, func(t *testing.T, s side) {
			src := &odd{source: newSource(false, "one")}
			inf, _, stop := begin(t, s, src)
			defer stop()
			tooLarge := apierrors.NewTimeoutError("Too large resource version: 2, current: 1", 1)
			tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
			src.list = func(o metav1.ListOptions) (runtime.Object, error) {
				if o.ResourceVersion != "" {
					return nil, tooLarge
				}
				return src.source.List(o)
			}
			src.gap(func() { src.putLocked("two") })
			time.Sleep(time.Minute)
			if v := version(t, inf, "two"); v != "3" {
				t.Errorf("the cache holds @%s", v)
			}
		})
	})
	t.Run("15: forbidden later", func(t *testing.T) {
		both(t, func(t *testing.T, s side) {
			src := newSource(false, "one")
			inf, _, stop := begin(t, s, src)
			defer stop()
			src.refuseWith(apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no more")))
			src.cut()
			time.Sleep(time.Minute)
			_ = src.asked()
			time.Sleep(time.Hour)
			if n := len(src.asked()); n < 30 || n > 240 {
				t.Errorf("asked %d times in an hour", n)
			}
			if v := version(t, inf, "one"); v != "2" || !inf.HasSynced() {
				t.Errorf("the cache holds @%s", v)
			}
		})
	})
}
