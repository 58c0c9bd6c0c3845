package caches

import (
	"fmt"
	"iter"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

func (c *fakeCache) Observe(f func(iter.Seq[informer.Object])) (stop func()) {
	c.observer = f
	return func() { c.observer = nil }
}

// show applies a batch that shows these states.
func (c *fakeCache) show(watermark string, states ...*metav1.PartialObjectMetadata) {
	c.watermark = watermark
	for _, s := range states {
		c.objects[s.Name] = s
	}
	if c.observer != nil {
		c.observer(func(yield func(informer.Object) bool) {
			for _, s := range states {
				if !yield(s) {
					return
				}
			}
		})
	}
}

// A state that a cache shows is not missed, even if a later one is in the same batch. A state that the cache passes is
// missed, once: because no batch shows it, because another object has taken the place of its object, or because the
// history went back.
func TestExpected(t *testing.T) {
	c := &fakeCache{objects: map[string]*metav1.PartialObjectMetadata{}}
	s := newSet(fakeFactory{c})
	var missed []string
	var last *Expected
	expect := func(name, uid, version string) {
		last = &Expected{
			Key: types.NamespacedName{Namespace: "ns", Name: name}, UID: types.UID(uid), ResourceVersion: version,
			Missed: func() { missed = append(missed, name+"@"+version) },
		}
		s.Expect(last)
	}
	state := func(name, uid, version string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version},
		}
	}
	want := func(what string, names ...string) {
		t.Helper()
		if fmt.Sprint(missed) != fmt.Sprint(names) {
			t.Errorf("%s: missed %v, want %v", what, missed, names)
		}
		missed = nil
	}
	expect("a", "1", "10")
	want("before the first list")
	c.show("10", state("a", "1", "10"))
	want("listed")
	expect("a", "1", "10")
	want("held already")
	expect("a", "1", "9")
	want("passed already", "a@9")
	expect("b", "2", "11")
	expect("b", "2", "12")
	c.show("13", state("b", "2", "11"), state("b", "2", "12"), state("b", "2", "13"))
	want("all in one batch")
	expect("c", "3", "14")
	expect("b", "2", "15")
	expect("d", "4", "16")
	c.show("20", state("b", "2", "17"), state("d", "5", "18"))
	want("a list after a gap", "c@14", "b@15", "d@16")
	expect("e", "6", "30")
	c.show("5")
	want("the history went back", "e@30")
	expect("e", "6", "31")
	s.Unexpect(last)
	c.show("32")
	want("not expected any more")
	if c.observer != nil || len(s.awaiting) > 0 {
		t.Error("a cache is observed that nothing is expected of")
	}
	expect("e", "6", "opaque")
	for range maxExpected {
		expect("f", "7", "40")
	}
	want("as many as there may be")
	expect("g", "8", "41")
	want("too many", "g@41")
	if n := s.Expected(); n != maxExpected {
		t.Errorf("%d are expected", n)
	}
}
