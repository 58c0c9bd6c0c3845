package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/clientgo"
)

// side is one implementation. The types are client-go's on both.
type side struct {
	name        string
	newStore    func(cache.KeyFunc) cache.Store
	newIndexer  func(cache.KeyFunc, cache.Indexers) cache.Indexer
	newPlain    func(cache.ListerWatcher, runtime.Object, time.Duration) cache.SharedInformer
	newInformer func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer
	newWith     func(cache.ListerWatcher, runtime.Object, cache.SharedIndexInformerOptions) cache.SharedIndexInformer
	newOne      func(cache.InformerOptions) (cache.Store, cache.Controller)
}

var flyball = side{
	name:       "flyball",
	newStore:   clientgo.NewStore,
	newIndexer: clientgo.NewIndexer,
	newPlain:   clientgo.NewSharedInformer, newInformer: clientgo.NewSharedIndexInformer,
	newWith: clientgo.NewSharedIndexInformerWithOptions, newOne: clientgo.NewInformerWithOptions,
}

var upstream = side{
	name:       "clientgo",
	newStore:   func(k cache.KeyFunc) cache.Store { return cache.NewStore(k) },
	newIndexer: func(k cache.KeyFunc, i cache.Indexers) cache.Indexer { return cache.NewIndexer(k, i) },
	newPlain:   cache.NewSharedInformer, newInformer: cache.NewSharedIndexInformer,
	newWith: cache.NewSharedIndexInformerWithOptions, newOne: cache.NewInformerWithOptions,
}

// both runs f on each implementation, in virtual time.
func both(t *testing.T, f func(t *testing.T, s side)) {
	for _, s := range []side{upstream, flyball} {
		t.Run(s.name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, s) }) })
	}
}

// eachWay runs f on each implementation with a server that lists and with one that streams lists.
func eachWay(t *testing.T, f func(t *testing.T, s side, streams bool)) {
	both(t, func(t *testing.T, s side) { f(t, s, false) })
	for _, s := range []side{upstream, flyball} {
		t.Run(s.name+"/streams", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, s, true) }) })
	}
}

func pod(namespace, name, rv string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, ResourceVersion: rv,
			UID: types.UID(namespace + name),
		},
	}
	for _, l := range labels {
		metav1.SetMetaDataLabel(&p.ObjectMeta, l, "yes")
	}
	return p
}

// byLabel is an index with one value for each label.
func byLabel(obj any) ([]string, error) {
	var values []string
	for l := range obj.(*corev1.Pod).Labels {
		values = append(values, l)
	}
	return values, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// names returns the sorted names of objects.
func names(objs []any) []string {
	all := []string{}
	for _, o := range objs {
		all = append(all, o.(metav1.Object).GetName())
	}
	slices.Sort(all)
	return all
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// recorder is a handler that records its calls.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// take returns what was noted, in order, once all is quiet.
func (r *recorder) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lines
	r.lines = nil
	return l
}

func (r *recorder) OnAdd(obj any, initial bool) { r.note("add %s %v", obj.(*corev1.Pod).Name, initial) }

func (r *recorder) OnUpdate(old, obj any) {
	was, is := old.(*corev1.Pod), obj.(*corev1.Pod)
	other := ""
	if was.UID != is.UID {
		other = " of another UID"
	}
	r.note("update %s %s->%s%s", is.Name, was.ResourceVersion, is.ResourceVersion, other)
}

func (r *recorder) OnDelete(obj any) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		r.note("tombstone %s %s", d.Key, d.Obj.(*corev1.Pod).ResourceVersion)
		return
	}
	r.note("delete %s %s", obj.(*corev1.Pod).Name, obj.(*corev1.Pod).ResourceVersion)
}

// running starts an informer, and returns what stops it and waits.
func running(t *testing.T, inf interface{ RunWithContext(context.Context) }) (stop func()) {
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	var wg sync.WaitGroup
	wg.Go(func() { inf.RunWithContext(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// handled adds a recorder.
func handled(t *testing.T, inf cache.SharedInformer) (*recorder, cache.ResourceEventHandlerRegistration) {
	t.Helper()
	r := &recorder{}
	handle, err := inf.AddEventHandler(r)
	must(t, err)
	return r, handle
}
