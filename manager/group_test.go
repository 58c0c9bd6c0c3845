package manager

import (
	"context"
	"testing"
)

// named is a runnable that has a name and nothing else.
type named string

func (n named) Name() string              { return string(n) }
func (n named) Run(context.Context) error { return nil }

// A runnable that is being removed or restarted is not rebuilt at the end of a tenure.
func TestRemovedOrRestartedRunnablesAreNotRebuilt(t *testing.T) {
	g := &group{}
	for _, name := range []string{"a", "b", "later"} {
		if name == "later" {
			g.stopStarting(withLeader)
		} else {
			g.startAll(withLeader, func(*entry) {})
		}
		if err := g.add(newEntry(named(name))); err != nil {
			t.Fatal(err)
		}
	}
	claimed := func() (names []string) {
		for _, e := range g.claimEnded(withLeader) {
			names = append(names, e.name)
		}
		return names
	}
	a, started, err := g.claim("a")
	if err != nil || !started {
		t.Fatal(started, err)
	}
	if got := claimed(); len(got) != 1 || got[0] != "b" {
		t.Errorf("%q while a is being removed, want b", got)
	}
	g.unclaim(a)
	if got := claimed(); len(got) != 1 || got[0] != "a" {
		t.Errorf("%q, want a", got)
	}
	if _, _, err := g.claim("b"); err == nil {
		t.Error("b is being made anew and can be claimed")
	}
}
