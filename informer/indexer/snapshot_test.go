package indexer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/deltafifo"
)

// picture is everything that a reader can see, in order.
func picture(t *testing.T, list func() []object, get func(string) (object, bool),
	byIndex func(string) ([]object, error),
) string {
	t.Helper()
	var b strings.Builder
	write := func(what string, objs []object) {
		lines := []string{}
		for _, o := range objs {
			lines = append(lines, show(o))
		}
		slices.Sort(lines)
		fmt.Fprintln(&b, what, lines)
	}
	write("all", list())
	for _, value := range []string{"0", "1", "2"} {
		objs, err := byIndex(value)
		if err != nil {
			t.Fatal(err)
		}
		write(value, objs)
	}
	for i := range 6 {
		if o, found := get(fmt.Sprint("o", i)); found {
			write("get", []object{o})
		}
	}
	return b.String()
}

// FuzzSnapshot: whatever is written, an open snapshot shows the cache as it was when it was taken.
func FuzzSnapshot(f *testing.F) {
	f.Add([]byte{0x01, 0x42, 0xc1, 0x13, 0x81, 0x01, 0xc2})
	f.Add([]byte{0x01, 0xc1, 0x01}) // An update.
	for seed := range uint64(20) {
		some := make([]byte, 60)
		for i, source := 0, rand.NewPCG(seed, 0); i < len(some); i++ {
			some[i] = byte(source.Uint64())
		}
		f.Add(some)
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 100 {
			t.Skip("longer is not different")
		}
		x := New[object](nil, Options{})
		must(0, x.AddIndex("value", func(o object) ([]string, error) { return []string{o.Labels["value"]}, nil }))
		now := func() string {
			return picture(t, func() []object { return x.List("n", nil) },
				func(name string) (object, bool) { return x.Get("n/" + name) },
				func(v string) ([]object, error) { return x.ByIndex("value", v) })
		}
		type taken struct {
			Snapshot[object]
			want string
		}
		var open []taken
		for i, op := range ops {
			obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: fmt.Sprint("o", int(op&7)%6), UID: types.UID(strconv.Itoa(int(op>>3) & 1)),
				ResourceVersion: strconv.Itoa(i + 1), Labels: map[string]string{"value": strconv.Itoa(i % 3)},
			}}
			d := deltafifo.Delta[object]{Object: obj, ResourceVersion: obj.ResourceVersion}
			switch op >> 6 {
			case 2:
				d.Type = deltafifo.Delete
			case 3:
				open = append(open, taken{x.Snapshot(), now()})
				d = deltafifo.Delta[object]{Type: deltafifo.Bookmark, ResourceVersion: obj.ResourceVersion}
				if op&7 == 0 {
					d = deltafifo.Delta[object]{
						Type: deltafifo.Replace, ResourceVersion: obj.ResourceVersion,
						Objects: []object{obj},
					}
				}
			}
			if _, err := x.Apply([]deltafifo.Delta[object]{d}); err != nil {
				t.Fatal(err)
			}
			for _, s := range open {
				got := picture(t, func() []object { return s.List("n", nil) },
					func(name string) (object, bool) { return s.Get("n", name) },
					func(v string) ([]object, error) { return s.ByIndex("value", v) })
				if got != s.want {
					t.Fatalf("after %d writes the snapshot reads\n%swant\n%s", i+1, got, s.want)
				}
			}
		}
		must(0, x.AddIndex("late", func(object) ([]string, error) { return nil, nil }))
		for _, s := range open {
			if _, err := s.ByIndex("late", ""); !errors.Is(err, ErrNoIndex) {
				t.Errorf("index added later: %v", err)
			}
			s.Close()
			s.Close()
		}
		if len(x.snapshots) != 0 {
			t.Errorf("%d snapshots left", len(x.snapshots))
		}
	})
}
