package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flyball-dev/flyball/exercises/kube"
)

func object(name, app string, version int) *kube.Object {
	return &kube.Object{Name: name, Labels: map[string]string{"app": app}, Version: version}
}

func wantGet(t *testing.T, l *Ledger, name string, version int, why string) {
	t.Helper()
	o, ok := l.Get(name)
	if ok != (version != 0) || ok && (o == nil || o.Version != version) {
		want := "there should be no object"
		if version != 0 {
			want = fmt.Sprint("it should be version ", version)
		}
		t.Fatalf("Get(%q) returned %v (found: %v), and %s.\n%s", name, o, ok, want, why)
	}
}

func wantList(t *testing.T, l *Ledger, label, why string, want ...string) {
	t.Helper()
	var got []string
	for _, o := range l.List("app", label) {
		got = append(got, o.String())
	}
	if !slices.Equal(got, want) {
		t.Fatalf("List(%q) returned %v, it should be %v.\n%s", label, got, want, why)
	}
}

func Test1GetSeesWhatWasWritten(t *testing.T) {
	l := New(kube.NewStore(object("a", "web", 3)))
	wantGet(t, l, "a", 3, "Nothing was written, so the cache answers.")
	l.Wrote(object("a", "web", 7))
	l.Wrote(object("b", "web", 8))
	wantGet(t, l, "a", 7, "It was updated. The cache does not know yet.")
	wantGet(t, l, "b", 8, "It was created. The cache does not know yet.")
	wantGet(t, l, "c", 0, "Nobody has made it.")
}

func Test2GetDoesNotSeeWhatWasDeleted(t *testing.T) {
	l := New(kube.NewStore(object("a", "web", 3)))
	l.Deleted("a", 9)
	wantGet(t, l, "a", 0, "It was deleted. The cache still has it.")
}

func Test3TheCacheWinsWhenItHasCaughtUp(t *testing.T) {
	c := kube.NewStore(object("a", "web", 3))
	l := New(c)
	l.Wrote(object("a", "web", 7))
	c.Objects["a"], c.Version = object("a", "web", 9), 9
	wantGet(t, l, "a", 9, "Somebody else updated it after our write, and the cache has that. It is newer.")
	l.Wrote(object("a", "web", 11))
	c.Objects["a"], c.Version = object("a", "web", 11), 11
	if n := l.Len(); n != 0 {
		t.Fatalf("The write of version 11 was recorded, and the cache is at version 11. Len is %d, it should be 0.", n)
	}
}

func Test4ADeletionIsNotForEver(t *testing.T) {
	c := kube.NewStore(object("a", "web", 3))
	l := New(c)
	l.Deleted("a", 5)
	c.Objects["a"], c.Version = object("a", "web", 8), 8
	wantGet(t, l, "a", 8, "We deleted it at version 5. Somebody made it again, at version 8, and the cache has that.")
}

func Test5AnotherObjectTellsHowFarTheCacheIs(t *testing.T) {
	c := kube.NewStore(object("other", "db", 3))
	l := New(c)
	l.Wrote(object("a", "web", 5))
	delete(c.Objects, "other")
	c.Version = 12 // The watch has shown: a created at 5 and deleted by another program at 11, and other deleted at 12.
	wantGet(t, l, "a", 0, "We created it at version 5. The cache is at version 12 and does not have it, so somebody "+
		"deleted it.\nNo event of a has to come: the version of the cache is enough.")
	l = New(c)
	l.Wrote(object("a", "web", 15))
	l.Deleted("b", 16)
	c.Version = 20
	wantGet(t, l, "c", 0, "Nobody has made it.")
	if n := l.Len(); n != 0 {
		t.Fatalf("The cache has reached all own writes, and %d are still noted. A record that nobody empties grows "+
			"for ever.", n)
	}
}

func Test6ListSeesCreatesAndDeletes(t *testing.T) {
	l := New(kube.NewStore(object("a", "web", 1), object("b", "web", 2), object("c", "db", 3)))
	l.Wrote(object("d", "web", 5))
	l.Deleted("a", 6)
	wantList(t, l, "web", "a was deleted and d created. A controller that counts needs both.", "b@2", "d@5")
	wantList(t, l, "db", "Nothing with this label has changed.", "c@3")

	c := kube.NewStore(object("a", "web", 1), object("b", "web", 2))
	l = New(c)
	l.Wrote(object("a", "web", 5))
	l.Deleted("b", 6)
	c.Objects["a"], c.Objects["b"], c.Version = object("a", "web", 8), object("b", "web", 9), 9
	wantList(t, l, "web", "Since our writes, somebody has updated a and made b again. The cache is newer.", "a@8",
		"b@9")
}

func Test7ListFollowsLabels(t *testing.T) {
	l := New(kube.NewStore(object("a", "web", 1), object("b", "db", 2)))
	l.Wrote(object("a", "db", 5))
	l.Wrote(object("b", "web", 6))
	wantList(t, l, "web", "Our write took the label from a, and gave it to b. Look at the newer state.", "b@6")
	wantList(t, l, "db", "The same, seen from the other label.", "a@5")
}

func Test8AnswersMayComeInTheWrongOrder(t *testing.T) {
	l := New(kube.NewStore())
	l.Wrote(object("a", "web", 9))
	l.Wrote(object("a", "web", 7))
	wantGet(t, l, "a", 9, "Two goroutines wrote. The answer of the first write came last.")
	l.Deleted("a", 12)
	l.Wrote(object("a", "web", 11))
	wantGet(t, l, "a", 0, "It was deleted after the update whose answer came late.")
	l.Wrote(object("b", "web", 14))
	l.Deleted("b", 13)
	wantGet(t, l, "b", 14, "It was created again after the deletion whose answer came late.")
}

// Test9NeverOlderThanOwnWrites lets a server, a cache and a controller take random steps, and compares every read with
// the expected result.
func Test9NeverOlderThanOwnWrites(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		server, history := map[string]*kube.Object{}, []func(*kube.Store){}
		cache := kube.NewStore()
		l := New(cache)
		names := []string{"a", "b", "c"}
		own := map[string]int{} // by name: the version of our last write to the object
		for step := range 200 {
			name := names[random.IntN(len(names))]
			version := len(history) + 1
			switch random.IntN(5) {
			case 0, 1: // a create or an update, by us or by another program
				o := object(name, []string{"web", "db"}[random.IntN(2)], version)
				server[name] = o
				history = append(history, func(c *kube.Store) { c.Objects[name], c.Version = o, version })
				if random.IntN(2) == 0 {
					l.Wrote(o)
					own[name] = version
				}
			case 2:
				if _, ok := server[name]; !ok {
					continue
				}
				delete(server, name)
				history = append(history, func(c *kube.Store) { delete(c.Objects, name); c.Version = version })
				if random.IntN(2) == 0 {
					l.Deleted(name, version)
					own[name] = version
				}
			case 3:
				if cache.Version < len(history) {
					history[cache.Version](cache)
				}
			}
			// Get must return the state at our last write, or the state in the cache if it is newer.
			truth := kube.NewStore()
			for n := range max(own[name], cache.Version) {
				history[n](truth)
			}
			got, ok := l.Get(name)
			want, wantOK := truth.Objects[name]
			if ok != wantOK || ok && got != want {
				t.Fatalf("seed %d, step %d: Get(%q) returned %v (found: %v), it should be %v (%v).\n"+
					"The cache is at version %d, the last own write of this object at %d.",
					seed, step, name, got, ok, want, wantOK, cache.Version, own[name])
			}
		}
	}
}
