package shard

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
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

// Matches is called for each event, so it must be cheap.
func TestMatchesDoesNotAllocate(t *testing.T) {
	p := &Part{Index: 3, Of: 16, field: byUID}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uuid.NewUUID())}}
	if n := testing.AllocsPerRun(100, func() { p.Matches(pod) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
