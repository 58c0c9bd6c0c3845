package index

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A pod is an object that is found by its node and its labels.
type pod struct {
	name    string
	version int
	labels  []string
}

// labelsOf is the function of the index. It fails on an object without labels.
func labelsOf(p *pod) ([]string, error) {
	if p.labels == nil {
		return nil, errors.New("it has no labels")
	}
	return p.labels, nil
}

// found returns the objects under a value, as name@version.
func found(x *Index[*pod], value string) string {
	var names []string
	for _, p := range x.ByValue(value) {
		names = append(names, fmt.Sprintf("%s@%d", p.name, p.version))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func set(t *testing.T, x *Index[*pod], name string, version int, labels ...string) *pod {
	t.Helper()
	p := &pod{name, version, labels}
	if err := x.Set(name, p); err != nil {
		t.Fatalf("Set(%s) returned %v, and the function did not fail.", name, err)
	}
	return p
}

func wantFound(t *testing.T, x *Index[*pod], value, want, why string) {
	t.Helper()
	if got := found(x, value); got != want {
		t.Fatalf("Under %q is [%s], it should be [%s].\n%s", value, got, want, why)
	}
}

func Test1ObjectsAreFoundByTheirValue(t *testing.T) {
	x := New(labelsOf)
	set(t, x, "a", 1, "web")
	set(t, x, "b", 2, "db")
	set(t, x, "c", 3, "web")
	wantFound(t, x, "web", "a@1 c@3", "a and c were put there.")
	wantFound(t, x, "db", "b@2", "b was put there.")
	wantFound(t, x, "mail", "", "Nothing was put there.")
}

func Test2AnUpdateMovesTheObject(t *testing.T) {
	x := New(labelsOf)
	set(t, x, "a", 1, "web")
	set(t, x, "a", 2, "web")
	wantFound(t, x, "web", "a@2", "a has a new state with the same label. Readers must get the new state.")
	set(t, x, "a", 3, "db")
	wantFound(t, x, "web", "", "a has moved to db.")
	wantFound(t, x, "db", "a@3", "a has moved there.")
}

func Test3OneObjectHasManyValues(t *testing.T) {
	x := New(labelsOf)
	a := set(t, x, "a", 1, "web", "blue", "web")
	if got := strings.Join(a.labels, " "); got != "web blue web" {
		t.Fatalf("The labels of a were [web blue web], and Set has made [%s] of them. Others read the object.", got)
	}
	wantFound(t, x, "web", "a@1", "The function gave web twice. The object is there once.")
	set(t, x, "a", 2, "web", "green")
	wantFound(t, x, "web", "a@2", "It is still found under web, in its new state.")
	wantFound(t, x, "blue", "", "It is green now.")
	wantFound(t, x, "green", "a@2", "It is green now.")
}

func Test4ADeletedObjectIsFoundNowhere(t *testing.T) {
	x := New(labelsOf)
	set(t, x, "a", 1, "web", "blue")
	set(t, x, "b", 2, "web")
	x.Delete("a")
	x.Delete("a")
	x.Delete("never there")
	wantFound(t, x, "web", "b@2", "a was deleted, b was not.")
	wantFound(t, x, "blue", "", "a was deleted.")
}

func Test5AValueWithoutObjectsIsGone(t *testing.T) {
	x := New(labelsOf)
	set(t, x, "a", 1, "web")
	set(t, x, "b", 2, "db")
	set(t, x, "b", 3, "mail")
	x.ByValue("nobody")
	x.Delete("a")
	if got := x.Values(); !slices.Equal(got, []string{"mail"}) {
		t.Fatalf("Values returned %q, it should be [mail]: no other value has an object.\n"+
			"Whatever is kept for values that are gone is a leak.", got)
	}
}

func Test6TheSliceBelongsToTheCaller(t *testing.T) {
	x := New(labelsOf)
	set(t, x, "a", 1, "web")
	set(t, x, "b", 2, "web")
	got := x.ByValue("web")
	clear(got)
	wantFound(t, x, "web", "a@1 b@2", "A reader cleared the slice that it had got. The index must have its own.")
}

func Test7ACarelessReaderDoesNoLastingHarm(t *testing.T) {
	x := New(labelsOf)
	set(t, x, "a", 1, "web")
	x.ByValue("web")[0].labels[0] = "db" // It must not, and it does.
	set(t, x, "a", 2, "db")
	wantFound(t, x, "web", "", "A reader changed the label of what it had got from web to db, and wrote that to the "+
		"server.\nThe event came: a is db now. If the index asks the old state where it was, it is told a lie.")
	wantFound(t, x, "db", "a@2", "The event said db.")
	x.ByValue("db")[0].labels[0] = "mail"
	x.Delete("a")
	wantFound(t, x, "db", "", "A reader changed the label of what it had got. Then the object was deleted.")
	if got := x.Values(); len(got) != 0 {
		t.Fatalf("The only object was deleted, and Values returned %q.", got)
	}
}

func Test8AnObjectThatFailsIsLeftOut(t *testing.T) {
	x := New(labelsOf)
	set(t, x, "a", 1, "web")
	set(t, x, "b", 2, "web")
	if err := x.Set("a", &pod{"a", 3, nil}); err == nil {
		t.Fatal("The function failed, and Set returned no error. Somebody has to hear of it.")
	}
	wantFound(t, x, "web", "b@2", "The function failed on the new state of a. Its old state is no longer true.")
	set(t, x, "a", 4, "web")
	wantFound(t, x, "web", "a@4 b@2", "The function works on the newest state of a.")
}

func Test9ManyReadersAndWriters(t *testing.T) {
	const writers, each = 4, 2000
	var calls, sets [writers]int
	x := New(func(p *pod) ([]string, error) {
		calls[p.name[0]-'a']++ // Each writer has objects of its own.
		return p.labels, nil
	})
	var all sync.WaitGroup
	want := [writers]map[string]*pod{}
	for w := range writers {
		want[w] = map[string]*pod{}
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 5))
			for n := range each {
				name := fmt.Sprintf("%c%d", 'a'+w, random.IntN(10))
				if random.IntN(4) == 0 {
					x.Delete(name)
					delete(want[w], name)
				} else {
					p := &pod{name, n, []string{fmt.Sprint("l", random.IntN(3))}}
					_ = x.Set(name, p)
					sets[w]++
					want[w][name] = p
				}
				for _, p := range x.ByValue("l1") {
					if p == nil || p.labels[0] != "l1" {
						t.Errorf("A reader asked for l1 and got %+v.", p)
						return
					}
				}
			}
		})
	}
	all.Wait()
	if calls != sets {
		t.Errorf("The writers called Set %v times, and the function was called %v times. It should be called once for "+
			"each Set: it may be slow, and two calls may give two answers.", sets, calls)
	}
	for _, label := range []string{"l0", "l1", "l2"} {
		var names []string
		for w := range writers {
			for p := range maps.Values(want[w]) {
				if p.labels[0] == label {
					names = append(names, fmt.Sprintf("%s@%d", p.name, p.version))
				}
			}
		}
		slices.Sort(names)
		wantFound(t, x, label, strings.Join(names, " "),
			"Four writers and readers were at work. An update was lost, or two of them met.")
	}
}

func Test10ReadersDoNotWaitForTheFunction(t *testing.T) {
	var x *Index[*pod]
	x = New(func(p *pod) ([]string, error) {
		read := make(chan struct{})
		go func() {
			x.ByValue("web")
			close(read)
		}()
		select {
		case <-read:
		case <-time.After(2 * time.Second):
			t.Errorf("The function works on %s, and a reader of other objects waits. A function may be slow: call it "+
				"before you lock.", p.name)
		}
		return p.labels, nil
	})
	set(t, x, "a", 1, "web")
}
