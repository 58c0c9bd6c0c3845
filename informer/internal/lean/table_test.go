package lean

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/internal/heapsize"
)

// TestFieldIsJudgedAgain: if the values of a field do not recur, they are not looked up for a time. Once they begin to
// recur, all are looked up again.
func TestFieldIsJudgedAgain(t *testing.T) {
	var s site
	lookUp := func(values int, recur bool) (n int) {
		for range values {
			if s.worth() {
				n++
				if recur {
					s.found++
				}
			}
		}
		return n
	}
	for _, step := range []struct {
		values int
		recur  bool
		want   int
	}{
		{judged, false, judged},
		{rested * judged, true, 0},
		{judged, true, judged},
		{judged, true, judged},
	} {
		if got := lookUp(step.values, step.recur); got != step.want {
			t.Errorf("of %d values %d were looked up, want %d", step.values, got, step.want)
		}
	}
}

// TestSharedPartsAreBoundedInBytes: a large object that changes again and again leaves no more parts than mostBytes.
// Each state is decoded twice, because the table keeps only values that come twice.
func TestSharedPartsAreBoundedInBytes(t *testing.T) {
	state := func(n int) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "large"},
			Data:       map[string]string{"a": fmt.Sprint(n) + strings.Repeat("x", 1_000_000)},
		}
	}
	for name, decode := range map[string]func(d *Decoder, n int) error{
		"protobuf": func(d *Decoder, n int) error {
			data, err := state(n).Marshal()
			if err != nil {
				return err
			}
			return d.Unmarshal(data, &corev1.ConfigMap{}, true)
		},
		"JSON": func(d *Decoder, n int) error {
			text := fmt.Sprintf(`{"metadata":{"name":"large"},"data":{"a":{"b":"%d%s"}}}`, n,
				strings.Repeat("x", 1_000_000))
			v, err := ValueOf([]byte(text))
			if err != nil {
				return err
			}
			_, err = d.Tree(v, true)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDecoder()
			before := heapsize.Now()
			for n := range 70 { // of a megabyte each: more than the limit below
				for range 2 {
					if err := decode(d, n); err != nil {
						t.Fatal(err)
					}
				}
			}
			grown := heapsize.Now() - before
			if kept := d.parts.bytes + d.trees.bytes; kept == 0 || kept > mostBytes {
				t.Errorf("the parts have %d bytes, want some and at most %d", kept, mostBytes)
			}
			if limit := 48 << 20; grown > limit { // The bytes, and the values decoded from them.
				t.Errorf("the heap has grown by %d MB, want at most %d", grown>>20, limit>>20)
			}
			runtime.KeepAlive(d)
		})
	}
}

// TestTableCountsItsBytes: table.bytes is the sum over exactly the values that have a place, whatever was replaced.
func TestTableCountsItsBytes(t *testing.T) {
	d := NewDecoder()
	table := &d.trees
	for n := range 100_000 {
		hash := uint64(n) * 0x9E3779B97F4A7C15
		if table.find(hash) == nil {
			table.put(hash, nil)
		}
		table.keep(hash, &tree{text: make([]byte, n%1000)})
		if p := table.find(hash); p != nil && n%3 == 0 {
			p.hash |= met
		}
	}
	sum := 0
	for i := range table.places {
		sum += table.places[i].value.size()
	}
	if table.bytes != sum || sum == 0 || sum > mostBytes {
		t.Errorf("the table counts %d bytes and has %d, want at most %d", table.bytes, sum, mostBytes)
	}
}
