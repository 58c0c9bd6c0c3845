package informer

import (
	"fmt"
	"iter"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
)

// An observer is called after each batch, with the states that the batch added to the cache: all states of a watch, and
// those of a list that the cache did not have. It is not called after stop.
func TestObserve(t *testing.T) {
	inf := NewSharedInformer[object](struct {
		listwatch.ListerWatcher[object]
	}{}, Options[object]{})
	state := func(name, uid, version string) object {
		return &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version},
		}
	}
	type delta = deltafifo.Delta[object]
	upsert := func(name, uid, version string) delta {
		return delta{Type: deltafifo.Upsert, Object: state(name, uid, version), ResourceVersion: version}
	}
	var told []string
	stop := inf.observe(func(shown iter.Seq[objects.Object]) {
		told = append(told, "batch to "+inf.ResourceVersion())
		for obj := range shown {
			told = append(told, obj.GetName()+"@"+obj.GetResourceVersion())
		}
	})
	stopOther := inf.observe(func(shown iter.Seq[objects.Object]) {
		for range shown {
			break // An observer need not look at all of them.
		}
	})
	apply := func(deltas ...delta) {
		changes, _ := inf.process(quiet(t), deltas, nil) // There are no handlers.
		inf.notifyObservers(changes)
	}
	want := func(what string, states ...string) {
		t.Helper()
		if fmt.Sprint(told) != fmt.Sprint(states) {
			t.Errorf("%s: told %v, want %v", what, told, states)
		}
		told = nil
	}
	apply(delta{
		Type: deltafifo.Replace, ResourceVersion: "10",
		Objects: []object{state("a", "1", "9"), state("b", "2", "10")},
	})
	want("first list", "batch to 10", "a@9", "b@10")
	apply(upsert("a", "1", "11"), upsert("a", "1", "12"), upsert("c", "3", "13"))
	want("watch", "batch to 13", "a@11", "a@12", "c@13")
	apply(delta{Type: deltafifo.Bookmark, ResourceVersion: "14"})
	want("bookmark", "batch to 14")
	apply(delta{
		Type: deltafifo.Replace, ResourceVersion: "20",
		Objects: []object{state("a", "1", "12"), state("b", "4", "18")},
	})
	want("a list after a gap", "batch to 20", "b@18")
	stop()
	stop()
	apply(upsert("a", "1", "21"))
	want("after stop")
	stopOther()
	if n := len(inf.observers); n != 0 {
		t.Errorf("%d observers are left", n)
	}
}
