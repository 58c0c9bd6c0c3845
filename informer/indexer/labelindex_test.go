package indexer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/objects"
)

func names(objs []*corev1.Pod) (all []string) {
	for _, p := range objs {
		all = append(all, objects.Key(p))
	}
	slices.Sort(all)
	return all
}

// TestLabelIndex: a cache with label indexes lists the same objects as one without, for any selector, namespace and
// sequence of changes.
func TestLabelIndex(t *testing.T) {
	plain, indexed := New[*corev1.Pod](nil, Options{}), New[*corev1.Pod](nil, Options{})
	for _, key := range []string{"app", "tier"} {
		must(0, indexed.AddIndex(LabelIndex(key), ByLabel[*corev1.Pod](key)))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for version := range 500 {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("ns", r.IntN(3)), Name: fmt.Sprint("p", r.IntN(40)), UID: "u",
			ResourceVersion: fmt.Sprint(version + 1), Labels: map[string]string{},
		}}
		for _, key := range []string{"app", "tier", "other"} {
			if r.IntN(4) > 0 {
				p.Labels[key] = fmt.Sprint(r.IntN(3))
			}
		}
		d := deltafifo.Delta[*corev1.Pod]{Object: p, ResourceVersion: p.ResourceVersion}
		if r.IntN(5) == 0 {
			d.Type = deltafifo.Delete
		}
		must(plain.Apply([]deltafifo.Delta[*corev1.Pod]{d}))
		must(indexed.Apply([]deltafifo.Delta[*corev1.Pod]{d}))
		if version%20 != 0 {
			continue
		}
		for _, s := range []string{
			"", "app=1", "app==2,tier=0", "app in (1)", "app in (1,2)", "app!=1", "!app",
			"tier=9", "other=1,app=0", "app=1,app=2",
		} {
			sel := must(labels.Parse(s))
			for _, namespace := range []string{"", "ns1", "nowhere"} {
				if got, want := names(indexed.List(namespace, sel)),
					names(plain.List(namespace, sel)); !slices.Equal(got, want) {
					t.Fatalf("List(%q, %q) = %v, want %v", namespace, s, got, want)
				}
			}
		}
		if indexed.List("", labels.Nothing()) != nil && len(indexed.List("", labels.Nothing())) > 0 {
			t.Fatal("nothing was selected")
		}
		byIndex := must(indexed.ByIndex(LabelIndex("app"), "1"))
		if got := slices.Collect(must(indexed.AllByIndex(LabelIndex("app"), "1"))); !slices.Equal(got, byIndex) {
			t.Fatalf("AllByIndex = %v", names(got))
		}
	}
	if _, err := indexed.AllByIndex("none", ""); err == nil {
		t.Error("an index that is not there")
	}
}
