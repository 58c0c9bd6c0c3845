package informer

import (
	"slices"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/mutation"
)

// TestMutationIsNamed (case 25): the report names object, field and handler. A reader's mutation is found when the
// object is next replaced or delivered, and is not blamed on the handler that gets it.
func TestMutationIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		var found []string
		inf := NewSharedInformer[object](s, Options[object]{})
		inf.mutations = mutation.New[object](func(m mutation.Mutation) { found = append(found, m.String()) })
		_, err := inf.AddHandler(
			Handler[object]{OnAdd: func(o object, _ bool) { metav1.SetMetaDataLabel(&o.ObjectMeta, "app", "web") }},
			HandlerOptions{Name: "careless"},
		)
		must(0, err)
		defer start(t, inf.Run)()
		synctest.Wait()
		if want := []string{
			"handler careless changed ObjectMeta.Labels[app]: (none) -> web of default/a, which is shared: copy it " +
				"first",
		}; !slices.Equal(found, want) {
			t.Errorf("found %q", found)
		}
		o, _ := inf.Get("default", "a")
		o.Generation = 7
		s.put("a")
		synctest.Wait()
		if want := "a reader of the cache changed ObjectMeta.Generation: 1 -> 7 of default/a, which is shared: copy " +
			"it " +
			"first"; len(found) != 2 || found[1] != want {
			t.Errorf("found %q", found)
		}
		o, _ = inf.Get("default", "a")
		o.Generation = 8
		must(inf.AddHandler(Handler[object]{OnAdd: func(object, bool) {}}, HandlerOptions{Name: "innocent"}))
		synctest.Wait()
		if want := "a reader of the cache changed ObjectMeta.Generation: 2 -> 8 of default/a, which is shared: copy " +
			"it " +
			"first"; len(found) != 3 || found[2] != want {
			t.Errorf("found %q", found)
		}
	})
}

// TestMutationsAreLookedForOnDemand: the environment variable is that of client-go.
func TestMutationsAreLookedForOnDemand(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "true": true} {
		t.Setenv("KUBE_CACHE_MUTATION_DETECTOR", value)
		if inf := NewSharedInformer[object](newServer(), Options[object]{}); (inf.mutations != nil) != want {
			t.Errorf("%q: a detector: %v, want %v", value, !want, want)
		}
	}
}
