package informer

import (
	"context"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/mutation"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/reflector"
)

// With this environment variable all tests over HTTP run with standard decoding.
func init() {
	podResource.StandardDecoding = os.Getenv("FLYBALL_STANDARD_DECODING") != ""
}

// templated returns a list of pods with one template.
func templated(names ...string) *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for _, name := range names {
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, UID: "u", ResourceVersion: "5", Labels: map[string]string{"app": "web"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			},
			Spec: corev1.PodSpec{NodeName: "n"},
		})
	}
	return list
}

// A hundred objects are enough for parts to be shared. Which parts depends on hashes, and on the values in between.
var hundred = strings.Split(strings.Repeat("abcdefghij", 10), "")

// distinct counts the distinct pointers to parts.
func distinct[T any](objs []T, part func(T) any) int {
	all := map[uintptr]bool{}
	for _, obj := range objs {
		all[reflect.ValueOf(part(obj)).Pointer()] = true
	}
	return len(all)
}

// TestSharing: objects of a list share equal parts and have no managed fields, unless standard decoding is set.
// Exclusive objects have no managed fields either.
func TestSharing(t *testing.T) {
	for media, w := range wires {
		body := w.list(t, templated(hundred...))
		for _, c := range []struct{ standard, exclusive, shared, managed bool }{
			{shared: media == "protobuf"}, {exclusive: true}, {standard: true, managed: true},
		} {
			o := podResource
			o.StandardDecoding = c.standard
			lw := listwatch.NewRESTListerWatcher[*corev1.Pod](
				restClient(t, answer(func(*http.Request) (int, string, []byte) { return 200, w.media, body })), o,
			)
			var got []*corev1.Pod
			must(
				lw.List(t.Context(), listwatch.ListOptions{Exclusive: c.exclusive},
					func(p *corev1.Pod) error { got = append(got, p); return nil }),
			)
			if n := distinct(got, func(p *corev1.Pod) any { return p.Labels }); c.shared && n > len(got)/2 ||
				!c.shared && n != len(got) {
				t.Errorf("%s %+v: %d different labels in %d pods", media, c, n, len(got))
			}
			if managed := got[0].ManagedFields != nil; managed != c.managed {
				t.Errorf("%s %+v: managed fields %v", media, c, managed)
			}
		}
		if media != "json" {
			continue
		}
		lw := listwatch.NewRESTListerWatcher[*unstructured.Unstructured](
			restClient(t, answer(func(*http.Request) (int, string, []byte) { return 200, w.media, body })), podResource,
		)
		var got []*unstructured.Unstructured
		must(
			lw.List(t.Context(), listwatch.ListOptions{},
				func(u *unstructured.Unstructured) error { got = append(got, u); return nil }),
		)
		n := distinct(got, func(u *unstructured.Unstructured) any { return u.Object["spec"] })
		if !podResource.StandardDecoding && (n > len(got)/2 || got[0].GetManagedFields() != nil) {
			t.Errorf("custom resources: %d different specs in %d, managed fields %v", n, len(got),
				got[0].GetManagedFields())
		}
	}
}

// TestTransformMayChangeObjects: a transform gets objects that share nothing.
func TestTransformMayChangeObjects(t *testing.T) {
	body := wires["protobuf"].list(t, templated(hundred...))
	lw := listwatch.NewRESTListerWatcher[*corev1.Pod](restClient(t, answer(func(r *http.Request) (int, string, []byte) {
		if r.URL.Query().Get("watch") != "" {
			<-r.Context().Done()
		}
		return 200, wires["protobuf"].media, body
	})), podResource)
	inf := NewSharedInformer(lw, Options[*corev1.Pod]{Transform: func(p *corev1.Pod) (*corev1.Pod, error) {
		p.Labels["name"] = p.Name
		return p, nil
	}})
	defer start(t, inf.Run)()
	must(0, inf.WaitForSync(t.Context()))
	for p := range inf.All() {
		if p.Labels["name"] != p.Name {
			t.Errorf("%s has the labels %v", p.Name, p.Labels)
		}
	}
}

// TestMutationOfSharedPart: a handler that modifies a part which many objects share is reported with the object that it
// was called with.
func TestMutationOfSharedPart(t *testing.T) {
	if podResource.StandardDecoding {
		t.Skip("nothing is shared")
	}
	body := wires["protobuf"].list(t, templated(hundred...))
	lw := listwatch.NewRESTListerWatcher[*corev1.Pod](restClient(t, answer(func(r *http.Request) (int, string, []byte) {
		if r.URL.Query().Get("watch") != "" {
			<-r.Context().Done()
		}
		return 200, wires["protobuf"].media, body
	})), podResource)
	found := make(chan mutation.Mutation, 100)
	inf := NewSharedInformer(lw, Options[*corev1.Pod]{})
	inf.mutations = mutation.New[*corev1.Pod](func(m mutation.Mutation) { found <- m })
	must(inf.AddHandler(Handler[*corev1.Pod]{OnAdd: func(p *corev1.Pod, _ bool) {
		if p.Name == "j" {
			p.Labels["app"] = "db"
		}
	}}, HandlerOptions{Name: "careless"}))
	defer start(t, inf.Run)()
	if m := <-found; m.Handler != "careless" || m.Object != "ns/j" ||
		!strings.HasPrefix(m.Field, "ObjectMeta.Labels[app]") {
		t.Errorf("found %v", m)
	}
}

// learnt returns the first n deltas of a reflector.
func learnt(t *testing.T, lw listwatch.ListerWatcher[*corev1.Pod], o reflector.Options[*corev1.Pod],
	n int,
) (all []deltafifo.Delta[*corev1.Pod]) {
	t.Helper()
	fifo := deltafifo.New[*corev1.Pod]()
	defer start(t, reflector.New(lw, fifo, o).Run)()
	for len(all) < n {
		<-fifo.Ready()
		all = append(all, fifo.Take(nil)...)
	}
	return all[:n]
}

// listsOnly never answers a watch, because that would also make an object.
type listsOnly struct {
	listwatch.ListerWatcher[*corev1.Pod]
}

func (listsOnly) Watch(ctx context.Context, _ listwatch.WatchOptions) (listwatch.Watch[*corev1.Pod], error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestHeldObjectsAreNotDecoded: a listed object that the cache holds in exactly this state keeps its pointer and is not
// decoded. No handler is called for it.
func TestHeldObjectsAreNotDecoded(t *testing.T) {
	for media, w := range wires {
		t.Run(media, func(t *testing.T) {
			list := templated("a", "b")
			list.Items[1].UID = "v"
			body := w.list(t, list)
			var made atomic.Int64
			o := podResource
			o.New = func() Object { made.Add(1); return &corev1.Pod{} }
			lw := listwatch.NewRESTListerWatcher[*corev1.Pod](
				restClient(t, answer(func(*http.Request) (int, string, []byte) { return 200, w.media, body })), o,
			)
			x := indexer.New[*corev1.Pod](nil, indexer.Options{})
			made.Store(0)
			all := learnt(t, listsOnly{lw}, reflector.Options[*corev1.Pod]{Cache: x}, 1)[0]
			firstMade := made.Load() // The objects, and one to determine its type.
			first := must(
				x.Apply([]deltafifo.Delta[*corev1.Pod]{
					{Type: deltafifo.Replace, Objects: all.Objects, ResourceVersion: "7"},
				}),
			)
			a, _ := x.Get("ns/a")
			list.Items[1].ResourceVersion = "6"
			body = w.list(t, list)
			made.Store(0)
			again := learnt(t, listsOnly{lw}, reflector.Options[*corev1.Pod]{Cache: x}, 1)[0]
			second := must(
				x.Apply([]deltafifo.Delta[*corev1.Pod]{
					{Type: deltafifo.Replace, Objects: again.Objects, ResourceVersion: "8"},
				}),
			)
			if len(first.Changes) != 2 || len(second.Changes) != 1 || second.Changes[0].Key != "ns/b" ||
				again.Objects[0] != a || made.Load() != firstMade-1 {
				t.Errorf("%d objects were made instead of %d; %d and %d changes", made.Load(), firstMade-1,
					len(first.Changes), len(second.Changes))
			}
		})
	}
}

// TestHeldObjectsOfStreams: the same for a streamed list until it is complete. Changes after that are decoded in any
// case.
func TestHeldObjectsOfStreams(t *testing.T) {
	for media, w := range wires {
		list := templated("a", "b")
		end := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: "5",
				Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			},
		}
		var body []byte
		for i := range list.Items {
			body = append(body, w.event(t, "ADDED", &list.Items[i])...)
		}
		body = append(append(body, w.event(t, "BOOKMARK", end)...), w.event(t, "ADDED", &list.Items[0])...)
		lw := listwatch.NewRESTListerWatcher[*corev1.Pod](
			restClient(t, answer(func(*http.Request) (int, string, []byte) { return 200, w.media, body })), podResource,
		)
		x := indexer.New[*corev1.Pod](nil, indexer.Options{})
		streamed := reflector.Options[*corev1.Pod]{Cache: x, StreamLists: true}
		first := learnt(t, lw, streamed, 2)
		must(x.Apply(first))
		a, _ := x.Get("ns/a")
		again := learnt(t, lw, streamed, 2)
		if len(first) != 2 || len(again) != 2 || len(first[0].Objects) != 2 || len(again[0].Objects) != 2 {
			t.Fatalf("%s: %d and %d deltas", media, len(first), len(again))
		}
		if again[0].Objects[0] != a || again[1].Object == a || again[1].Object.Name != "a" {
			t.Errorf("%s: listed again as %p, changed to %p, held is %p", media, again[0].Objects[0], again[1].Object,
				a)
		}
	}
}
