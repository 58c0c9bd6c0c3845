package localapi_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/flyball-dev/flyball/localapi"
)

// TestListThenWatchLosesNothing follows a collection by list and watch, resuming cut watches where they stopped and
// listing again when told that a version has expired, while others write and compact. What it has seen in the end must
// be what is there, and it must have seen each object's versions rise.
func TestListThenWatchLosesNothing(t *testing.T) {
	const writers, writes = 6, 60
	inBubble(t, localapi.Options{HistoryLimit: 40},
		func(t *testing.T, server *localapi.Server, client kubernetes.Interface) {
			maps := client.CoreV1().ConfigMaps("default")
			var wg sync.WaitGroup
			for i := range writers {
				wg.Go(func() { writeAtRandom(t, maps, fmt.Sprintf("m%d", i), writes) })
			}
			wg.Go(func() {
				for range 20 {
					if err := server.Compact(t.Context()); err != nil {
						t.Errorf("compact: %v", err)
					}
				}
			})
			written := make(chan struct{})
			go func() {
				wg.Wait()
				close(written)
			}()
			f := &follower{t: t, maps: maps}
			f.follow(written)
			seen := f.state
			f.relist()
			if diff := cmp.Diff(f.state, seen); diff != "" || len(seen) != writers {
				t.Errorf("%d objects, state by list and watch (-want +got):\n%s", len(seen), diff)
			}
		})
}

// writeAtRandom creates, updates and deletes one object, and leaves it there.
func writeAtRandom(t *testing.T, maps corev1client.ConfigMapInterface, name string, writes int) {
	for n := range writes {
		var err error
		switch n % 5 {
		case 0:
			_, err = maps.Create(t.Context(), configMap(name), metav1.CreateOptions{})
		case 4:
			if n < writes-1 {
				err = maps.Delete(t.Context(), name, metav1.DeleteOptions{})
			}
		default:
			_, err = maps.Update(t.Context(), configMap(name, "n", fmt.Sprint(n)), metav1.UpdateOptions{})
		}
		if err != nil {
			t.Errorf("write %d of %s: %v", n, name, err)
			return
		}
	}
}

// follower keeps a map of names to versions by list and watch.
type follower struct {
	t       *testing.T
	maps    corev1client.ConfigMapInterface
	state   map[string]string
	version string
}

// follow goes on until done is closed and nothing more comes.
func (f *follower) follow(done <-chan struct{}) {
	f.t.Helper()
	f.relist()
	for {
		w, err := f.maps.Watch(f.t.Context(), metav1.ListOptions{ResourceVersion: f.version})
		if err != nil {
			f.t.Fatalf("watch from %s: %v", f.version, err)
		}
		for range 7 { // then the watch is cut
			select {
			case e := <-w.ResultChan():
				if f.take(e); e.Type == watch.Error {
					break
				}
				continue
			case <-done:
				finished := f.drain(w)
				w.Stop()
				if finished {
					return
				}
			}
			break
		}
		w.Stop()
	}
}

// drain takes what is left of a watch, and reports whether that was all: false if the watch had expired.
func (f *follower) drain(w watch.Interface) bool {
	for {
		synctest.Wait()
		select {
		case e := <-w.ResultChan():
			if f.take(e); e.Type == watch.Error {
				return false
			}
		default:
			return true
		}
	}
}

func (f *follower) relist() {
	_, list := names(f.t, f.maps, metav1.ListOptions{})
	f.state, f.version = map[string]string{}, list.ResourceVersion
	for i := range list.Items {
		f.state[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
}

// take applies one event.
func (f *follower) take(e watch.Event) {
	f.t.Helper()
	if e.Type == watch.Error {
		if err := apierrors.FromObject(e.Object); !apierrors.IsResourceExpired(err) {
			f.t.Fatalf("watch: %v", err)
		}
		f.relist()
		return
	}
	cm := e.Object.(*corev1.ConfigMap)
	if parseVersion(f.t, cm.ResourceVersion) <= parseVersion(f.t, f.version) {
		f.t.Fatalf("event of %s at version %s after %s", cm.Name, cm.ResourceVersion, f.version)
	}
	f.version = cm.ResourceVersion
	if delete(f.state, cm.Name); e.Type != watch.Deleted {
		f.state[cm.Name] = f.version
	}
}
