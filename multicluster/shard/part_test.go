package shard

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/flyball-dev/flyball/informer"
)

// Every object belongs to exactly one part, the same for this package and for a server, for any number of parts. The
// parts are about equal.
func TestPartsMatchServerShards(t *testing.T) {
	for _, field := range []string{byUID, byNamespace} {
		for _, of := range []int{1, 2, 3, 7, 16, 100, maxParts} {
			counts := make([]int, of)
			for i := range 400 {
				uid := uuid.NewUUID()
				if i == 0 {
					uid = ""
				}
				obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Namespace: fmt.Sprintf("namespace-%d", i)}}
				in := 0
				for index := range of {
					p := &Part{Index: index, Of: of, field: field}
					served, err := p.selector().Matches(obj)
					if err != nil {
						t.Fatal(err)
					}
					if matches := p.Matches(obj); matches != served {
						t.Fatalf("%d of %d by %s: %v is in the part: %v, for a server: %v", index, of, field,
							obj.ObjectMeta, matches, served)
					} else if matches {
						in++
						counts[index]++
					}
				}
				if in != 1 {
					t.Fatalf("%v is in %d of %d parts", obj.ObjectMeta, in, of)
				}
				if of > 16 && i > 20 {
					break
				}
			}
			if of <= 7 && field == byUID {
				for index, n := range counts {
					if n < 400/of/2 || n > 400/of*3/2 {
						t.Errorf("part %d of %d has %d of 400 objects", index, of, n)
					}
				}
			}
		}
	}
}

func TestSelector(t *testing.T) {
	for _, c := range []struct {
		index, of int
		want      string
	}{
		{0, 2, "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"},
		{1, 2, "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')"},
		{1, 3, "shardRange(object.metadata.uid, '0x5555555555555556', '0xaaaaaaaaaaaaaaab')"},
		{0, 1, "shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')"},
	} {
		if got := (&Part{Index: c.index, Of: c.of, field: byUID}).Selector(); got != c.want {
			t.Errorf("part %d of %d: %s, want %s", c.index, c.of, got, c.want)
		}
	}
}

// held is an informer whose index finds all its objects.
type held struct {
	informer.Informer[*corev1.Pod]
	pods []*corev1.Pod
}

func (h held) List(string, labels.Selector) []*corev1.Pod    { return slices.Clone(h.pods) }
func (h held) ByIndex(string, string) ([]*corev1.Pod, error) { return slices.Clone(h.pods), nil }

func (h held) All() iter.Seq[*corev1.Pod]                            { return slices.Values(h.pods) }
func (h held) AllByIndex(_, _ string) (iter.Seq[*corev1.Pod], error) { return h.All(), nil }

// TestViewsShowOnePart: of the objects of an informer, the views of two parts show each in one of them, whichever way
// they are read.
func TestViewsShowOnePart(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 20 {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), UID: uuid.NewUUID()}})
	}
	var shown [][]*corev1.Pod
	for index := range 2 {
		v := &view[*corev1.Pod]{Informer: held{pods: pods}, part: &Part{Index: index, Of: 2, field: byUID}}
		listed := v.List("", nil)
		found, err := v.ByIndex("any", "value")
		each, errEach := v.AllByIndex("any", "value")
		if err != nil || errEach != nil {
			t.Fatal(err, errEach)
		}
		for way, got := range map[string][]*corev1.Pod{
			"ByIndex": found, "All": slices.Collect(v.All()), "AllByIndex": slices.Collect(each),
		} {
			if !slices.Equal(got, listed) {
				t.Errorf("part %d: %s shows %d objects, List %d", index, way, len(got), len(listed))
			}
		}
		for range v.All() {
			break // A loop may end early.
		}
		shown = append(shown, listed)
	}
	if both := slices.Concat(shown...); len(both) != len(pods) || slices.Contains(shown[0], shown[1][0]) {
		t.Errorf("the parts show %d and %d of %d objects", len(shown[0]), len(shown[1]), len(pods))
	}
}

// Matches is called for each event, so it must be cheap.
func TestMatchesDoesNotAllocate(t *testing.T) {
	p := &Part{Index: 3, Of: 16, field: byUID}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uuid.NewUUID())}}
	if n := testing.AllocsPerRun(100, func() { p.Matches(pod) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
