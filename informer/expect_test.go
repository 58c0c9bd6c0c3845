package informer

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/cachecheck"
)

// What a cache shows is not missed: by a watch, whatever comes later in the same batch, or by a list. What it comes
// past is missed, once: a state that nothing shows, one that another took the place of, and all when the history goes
// back.
func TestExpected(t *testing.T) {
	inf := NewSharedInformer[object](struct {
		listwatch.ListerWatcher[object]
	}{}, Options[object]{})
	var missed []string
	expect := func(name, uid, version string) {
		e := &cachecheck.Expected{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version}
		e.Missed = func() { missed = append(missed, name+"@"+version) }
		inf.check.Expect(e)
	}
	state := func(name, uid, version string) object {
		return &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version},
		}
	}
	type delta = deltafifo.Delta[object]
	upsert := func(name, uid, version string) delta {
		return delta{Type: deltafifo.Upsert, Object: state(name, uid, version), ResourceVersion: version}
	}
	apply := func(deltas ...delta) { inf.passed(inf.process(quiet(t), deltas, nil)) }
	want := func(what string, names ...string) {
		t.Helper()
		if fmt.Sprint(missed) != fmt.Sprint(names) {
			t.Errorf("%s: missed %v, want %v", what, missed, names)
		}
		missed = nil
	}
	expect("a", "1", "10")
	want("before the first list")
	apply(delta{Type: deltafifo.Replace, ResourceVersion: "10", Objects: []object{state("a", "1", "10")}})
	want("listed")
	expect("a", "1", "10")
	want("held already")
	expect("a", "1", "9")
	want("passed already", "a@9")
	expect("b", "2", "11")
	expect("b", "2", "12")
	apply(upsert("b", "2", "11"), upsert("b", "2", "12"), upsert("b", "2", "13"))
	want("all in one batch")
	expect("c", "3", "14")
	expect("b", "2", "15")
	expect("d", "4", "16")
	apply(
		delta{
			Type: deltafifo.Replace, ResourceVersion: "20",
			Objects: []object{state("b", "2", "17"), state("d", "5", "18")},
		},
	)
	want("a list after a gap", "c@14", "b@15", "d@16")
	expect("e", "6", "30")
	apply(delta{Type: deltafifo.Replace, ResourceVersion: "5", Accept: deltafifo.AcceptEarlier})
	want("the history went back", "e@30")
	expect("e", "6", "opaque")
	for range cachecheck.MaxExpected {
		expect("f", "7", "40")
	}
	want("as many as there may be")
	expect("g", "8", "41")
	want("too many", "g@41")
	if n := inf.Stats().Expected; n != cachecheck.MaxExpected {
		t.Errorf("%d are expected", n)
	}
}
