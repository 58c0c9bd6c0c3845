package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/flyball-dev/flyball/exercises/kube"
)

func object(namespace, name string, version int) *kube.Object {
	return &kube.Object{Namespace: namespace, Name: name, Version: version}
}

func Test1ANamespaceLeavesNothingBehind(t *testing.T) {
	s := New()
	s.Set(object("shop", "web", 1))
	for n := range 1000 {
		o := object(fmt.Sprint("test-", n), "web", n)
		s.Set(o)
		s.Delete(o)
	}
	if n := s.Sets(); n != 1 {
		t.Fatalf("A thousand namespaces came and went. The Store holds 1 object, and %d sets. It should hold 1.\n"+
			"An empty set costs some hundred bytes and the name of its namespace, for ever.", n)
	}
}

func Test2DeletingWhatIsNotThereAddsNothing(t *testing.T) {
	s := New()
	for n := range 1000 {
		s.Delete(object(fmt.Sprint("test-", n), "web", n))
	}
	if n := s.Sets(); n != 0 {
		t.Fatalf("A thousand objects were deleted that the Store did not have. It holds %d sets, it should hold "+
			"none.\n"+
			"Which function makes a set, and who calls it?", n)
	}
}

func Test3AListLeavesNothingBehind(t *testing.T) {
	s := New()
	for n := range 1000 {
		s.Set(object(fmt.Sprint("test-", n), "web", n))
	}
	s.Replace([]*kube.Object{object("shop", "web", 1001)})
	if n := s.Sets(); n != 1 {
		t.Fatalf("A thousand namespaces were there. Then a list had one object. The Store holds %d sets, it should "+
			"hold 1.", n)
	}
	if got := s.List("shop"); fmt.Sprint(got) != "[shop/web@1001]" {
		t.Fatalf("After the list, shop has %v.", got)
	}
	if got := s.List("test-1"); len(got) != 0 {
		t.Fatalf("The list had nothing in test-1, and the Store has %v.", got)
	}
}

func Test4OthersOfTheNamespaceStay(t *testing.T) {
	s := New()
	s.Set(object("shop", "web", 1))
	s.Set(object("shop", "db", 2))
	s.Delete(object("shop", "web", 3))
	if got := s.List("shop"); fmt.Sprint(got) != "[shop/db@2]" {
		t.Fatalf("web was deleted and db was not. The namespace has %v.", got)
	}
}

func Test5ANamespaceMayComeBack(t *testing.T) {
	s := New()
	s.Set(object("shop", "web", 1))
	s.Delete(object("shop", "web", 2))
	s.Set(object("shop", "web", 3))
	if got := s.List("shop"); fmt.Sprint(got) != "[shop/web@3]" {
		t.Fatalf("web was deleted, and made again. The namespace has %v.", got)
	}
}

func Test6TheStoreHoldsWhatItWasTold(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 2))
	s, want := New(), map[string]map[string]int{}
	for version := range 5000 {
		o := object(fmt.Sprint("ns-", random.IntN(20)), fmt.Sprint("o-", random.IntN(3)), version)
		if random.IntN(2) == 0 {
			s.Set(o)
			if want[o.Namespace] == nil {
				want[o.Namespace] = map[string]int{}
			}
			want[o.Namespace][o.Name] = version
		} else {
			s.Delete(o)
			delete(want[o.Namespace], o.Name)
			if len(want[o.Namespace]) == 0 {
				delete(want, o.Namespace)
			}
		}
		got := map[string]int{}
		for _, had := range s.List(o.Namespace) {
			got[had.Name] = had.Version
		}
		if len(got) != len(want[o.Namespace]) || got[o.Name] != want[o.Namespace][o.Name] {
			t.Fatalf("%s has %v, it should have %v.", o.Namespace, got, want[o.Namespace])
		}
		if s.Sets() != len(want) {
			t.Fatalf("%d namespaces have objects, and the Store holds %d sets.", len(want), s.Sets())
		}
	}
}
