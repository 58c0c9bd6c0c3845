package imagestreamtag

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

func ExampleParse() {
	ref, err := Parse("ocp/4.21:cli")
	fmt.Println(ref.StreamKey(), ref.Tag, err)
	_, err = Parse("ocp/cli")
	fmt.Println(err)
	// Output:
	// ocp/4.21 cli <nil>
	// "cli" in namespace "ocp" is no image stream tag: want stream:tag
}

type queue struct {
	reconcile.Enqueuer[string]
	keys []string
}

func (q *queue) Add(key string) { q.keys = append(q.keys, key) }

func stream(change func(*api.ImageStream)) *api.ImageStream {
	s := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}}
	for _, tag := range []string{"a", "b"} {
		s.Spec.Tags = append(s.Spec.Tags, api.TagReference{Name: tag})
		s.Status.Tags = append(s.Status.Tags,
			api.NamedTagEventList{Tag: tag, Items: []api.TagEvent{{Image: "sha256:1"}}})
	}
	if change != nil {
		change(s)
	}
	return s
}

// Source: the rows of TestImageStreamTagMapper of openshift/ci-tools, but Generic, an event that there is not here;
// the last two are ours.
func TestHandler(t *testing.T) {
	h := Handler(func(_ context.Context, r Ref) []string { return []string{r.String()} })
	update := func(change func(*api.ImageStream)) func(*queue) {
		return func(q *queue) { h.OnUpdate(t.Context(), stream(nil), stream(change), q) }
	}
	for name, c := range map[string]struct {
		event func(*queue)
		want  []string
	}{
		"create: all": {
			func(q *queue) { h.OnAdd(t.Context(), stream(nil), true, q) },
			[]string{"ns/s:a", "ns/s:b"},
		},
		"delete: all": {
			func(q *queue) { h.OnDelete(t.Context(), informer.Deleted[*api.ImageStream]{Object: stream(nil)}, q) },
			[]string{"ns/s:a", "ns/s:b"},
		},
		"update: those that changed": {
			update(func(s *api.ImageStream) { s.Point("b", api.TagEvent{Image: "sha256:2"}) }), []string{"ns/s:b"},
		},
		"update without a change": {update(nil), nil},
		"deletion timestamp: all": {
			update(func(s *api.ImageStream) { s.DeletionTimestamp = &metav1.Time{} }),
			[]string{"ns/s:a", "ns/s:b"},
		},
		"soft-deleted: those that are": {
			update(
				func(s *api.ImageStream) { s.Spec.Tags[0].Annotations = map[string]string{softDelete: "2026-01-01"} },
			), []string{"ns/s:a"},
		},
		"both: each once": {update(func(s *api.ImageStream) {
			s.Spec.Tags[0].Annotations = map[string]string{softDelete: ""}
			s.Point("a", api.TagEvent{})
		}), []string{"ns/s:a"}},
		"a tag that is gone, and a new one": {
			update(func(s *api.ImageStream) { s.Status.Tags = s.Status.Tags[:1]; s.Point("c", api.TagEvent{}) }),
			[]string{"ns/s:c", "ns/s:b"},
		},
	} {
		var q queue
		if c.event(&q); !reflect.DeepEqual(q.keys, c.want) {
			t.Errorf("%s: %v, want %v", name, q.keys, c.want)
		}
	}
}

func TestRefRoundTrip(t *testing.T) {
	for _, r := range []Ref{{"ocp", "4.21", "cli"}, {"my-ns", "a.b-c", "v1.2"}} {
		if got, err := Parse(r.String()); got != r || err != nil {
			t.Errorf("%v became %v, %v", r, got, err)
		}
	}
	for _, text := range []string{"", "a", "a/b", "a/:c", "a/b:", "/b:c", "a/b:c:d", "a/b/c:d"} {
		if r, err := Parse(text); err == nil {
			t.Errorf("%q became %v", text, r)
		}
	}
}
