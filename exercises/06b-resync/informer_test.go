package informer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// A record has the calls of a handler since the last check.
type record []string

func (r *record) hear(old, now *kube.Object) {
	switch {
	case old == nil:
		*r = append(*r, fmt.Sprintf("+%s@%d", now.Name, now.Version))
	case now == nil:
		*r = append(*r, fmt.Sprintf("-%s@%d", old.Name, old.Version))
	case old.Version == now.Version:
		*r = append(*r, fmt.Sprintf("=%s@%d", now.Name, now.Version))
	default:
		*r = append(*r, fmt.Sprintf("%s@%d>%d", now.Name, old.Version, now.Version))
	}
}

func (r *record) look() string {
	heard := strings.Join(*r, " ")
	*r = nil
	return heard
}

// begin returns an informer that has a and b, with a handler that wants no resync and one that does.
func begin() (i *Informer, plain, resyncing *record) {
	i, plain, resyncing = New(), &record{}, &record{}
	i.AddHandler(plain.hear, false)
	i.AddHandler(resyncing.hear, true)
	i.Event(&kube.Object{Name: "a", Version: 1})
	i.Event(&kube.Object{Name: "b", Version: 2})
	plain.look()
	resyncing.look()
	return i, plain, resyncing
}

func want(t *testing.T, who string, r *record, want, why string) {
	t.Helper()
	if got := r.look(); got != want {
		t.Fatalf("The handler %s heard [%s], it should be [%s].\n%s", who, got, want, why)
	}
}

func Test1AChangeInAGapReachesEveryHandler(t *testing.T) {
	i, plain, resyncing := begin()
	i.List([]*kube.Object{{Name: "a", Version: 1}, {Name: "b", Version: 5}})
	want(t, "without a resync", plain, "b@2>5", "The watch was broken, and b changed meanwhile. The list is how one "+
		"learns of it. No event will come.")
	want(t, "with a resync", resyncing, "b@2>5", "It must hear of the change, too, and of nothing else.")
	i.List([]*kube.Object{{Name: "a", Version: 1}, {Name: "b", Version: 2}})
	want(t, "without a resync", plain, "b@5>2", "The server was restored. An earlier version is a change, too.")
	want(t, "with a resync", resyncing, "b@5>2", "The server was restored.")
}

func Test2ANewObjectInAGapReachesEveryHandler(t *testing.T) {
	i, plain, resyncing := begin()
	i.List([]*kube.Object{{Name: "a", Version: 1}, {Name: "b", Version: 2}, {Name: "c", Version: 4}})
	want(t, "without a resync", plain, "+c@4", "c was created while the watch was broken.")
	want(t, "with a resync", resyncing, "+c@4", "c was created while the watch was broken.")
}

func Test3AListIsNoResync(t *testing.T) {
	i, plain, resyncing := begin()
	i.List([]*kube.Object{{Name: "a", Version: 1}, {Name: "b", Version: 2}})
	want(t, "without a resync", plain, "", "Nothing has changed. In a cluster with 100,000 objects each broken watch "+
		"would mean 100,000 calls.")
	want(t, "with a resync", resyncing, "", "Nothing has changed, and no resync is due.")
}

func Test4AResyncIsForThoseWhoAskedForIt(t *testing.T) {
	i, plain, resyncing := begin()
	i.Resync()
	want(t, "without a resync", plain, "", "It did not ask for repetitions.")
	want(t, "with a resync", resyncing, "=a@1 =b@2", "It asked for repetitions.")
	i.List([]*kube.Object{{Name: "a", Version: 6}, {Name: "b", Version: 2}})
	i.Resync()
	want(t, "without a resync", plain, "a@1>6", "a changed in a gap.")
	want(t, "with a resync", resyncing, "a@1>6 =a@6 =b@2", "a changed in a gap. Then a resync came.")
}

func Test5ADeletionInAGapReachesEveryHandler(t *testing.T) {
	i, plain, resyncing := begin()
	i.List([]*kube.Object{{Name: "b", Version: 2}})
	want(t, "without a resync", plain, "-a@1", "a was deleted while the watch was broken.")
	want(t, "with a resync", resyncing, "-a@1", "a was deleted while the watch was broken.")
	i.List([]*kube.Object{{Name: "b", Version: 2}})
	want(t, "without a resync", plain, "", "Another list came. a was gone before, and its handlers know.")
}

func Test6EventsReachEveryHandler(t *testing.T) {
	i, plain, resyncing := begin()
	i.Event(&kube.Object{Name: "a", Version: 3})
	i.Deleted("b")
	want(t, "without a resync", plain, "a@1>3 -b@2", "Two events came.")
	want(t, "with a resync", resyncing, "a@1>3 -b@2", "Two events came.")
}
