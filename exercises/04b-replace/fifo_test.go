package fifo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// popAll pops all keys, and returns their changes.
func popAll(f *FIFO) (all []kube.Event) {
	for changes := f.Pop(); changes != nil; changes = f.Pop() {
		all = append(all, changes...)
	}
	return all
}

func keys(c *kube.Store) []string { return slices.Sorted(maps.Keys(c.Objects)) }

func object(name string, version int) *kube.Object { return &kube.Object{Name: name, Version: version} }

func Test1WhatIsOnlyInTheQueueMayBeGone(t *testing.T) {
	cache := kube.NewStore(object("db", 9))
	f := New(cache)
	f.Set(object("web", 11)) // web is created. The cache has not taken it yet.
	f.Replace([]*kube.Object{object("db", 9)})
	popAll(f)
	if got := keys(cache); !slices.Equal(got, []string{"db"}) {
		t.Fatalf("web was created, and its change was queued. Then the watch broke, and the list has only db: web is "+
			"gone.\nAll is handed out, and the cache has %q. No event will ever come for web.", got)
	}
}

func Test2TheDeletionHasTheNewestState(t *testing.T) {
	f := New(kube.NewStore())
	f.Set(object("web", 11))
	f.Set(object("web", 12))
	f.Replace(nil)
	all := popAll(f)
	if len(all) == 0 {
		t.Fatal("The queue had versions 11 and 12 of web, and nothing was handed out after the list.")
	}
	last := all[len(all)-1]
	if last.Type != kube.Deleted || last.Object.String() != "web@12" {
		t.Fatalf("The queue had versions 11 and 12 of web, and the list does not have it. The last change is %v, "+
			"it should be {DELETED web@12}.\nWho cleans up wants the last known state.", last)
	}
}

func Test3ADeletionIsQueuedOnce(t *testing.T) {
	cache := kube.NewStore(object("web", 9))
	f := New(cache)
	f.Delete(object("web", 12))
	f.Replace(nil)
	if all := popAll(f); len(all) != 1 || all[0].Type != kube.Deleted || all[0].Object.Version != 12 {
		t.Fatalf("The deletion of web was queued when the list came, which does not have it. The changes are %v.\n"+
			"One deletion is enough, and the one that the watch brought knows more: it has version 12.", all)
	}
}

func Test4WhatIsInTheCacheMayBeGone(t *testing.T) {
	cache := kube.NewStore(object("db", 9), object("web", 8))
	f := New(cache)
	f.Set(object("db", 11))
	f.Replace([]*kube.Object{object("new", 20)})
	popAll(f)
	if got := keys(cache); !slices.Equal(got, []string{"new"}) {
		t.Fatalf("The cache had db and web, and a change of db was queued. The list has only new. All is handed out, "+
			"and the cache has %q.", got)
	}
}

func Test5WhatWasDeletedMayBeBack(t *testing.T) {
	cache := kube.NewStore(object("web", 9))
	f := New(cache)
	f.Delete(object("web", 12))
	f.Replace([]*kube.Object{object("web", 15)})
	if all := popAll(f); len(all) != 2 || all[0].Type != kube.Deleted || all[1].Object.Version != 15 {
		t.Fatalf("web was deleted, and somebody made it again: the list has it. The changes are %v.\n"+
			"Both must be handed out, the deletion first.", all)
	}
}

func Test6TheListIsRightWhateverCameBefore(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 4))
		cache := kube.NewStore()
		f := New(cache)
		var said []string
		for version := 1; version < 30; version++ {
			o := object(fmt.Sprint("o", random.IntN(4)), version)
			switch random.IntN(5) {
			case 0, 1:
				f.Set(o)
				said = append(said, fmt.Sprintf("Set %s", o.Key()))
			case 2:
				f.Delete(o)
				said = append(said, fmt.Sprintf("Delete %s", o.Key()))
			case 3:
				f.Pop()
				said = append(said, "Pop")
			case 4:
				var list []*kube.Object
				for k := range 4 {
					if random.IntN(2) == 0 {
						list = append(list, object(fmt.Sprint("o", k), version))
					}
				}
				f.Replace(list)
				said = append(said, fmt.Sprintf("Replace %v", list))
			}
		}
		f.Replace([]*kube.Object{object("o1", 100), object("o3", 100)})
		popAll(f)
		if got := keys(cache); !slices.Equal(got, []string{"o1", "o3"}) {
			t.Fatalf("The last list had o1 and o3. All is handed out, and the cache has %q. Before the list:\n%v",
				got, said)
		}
	}
}
