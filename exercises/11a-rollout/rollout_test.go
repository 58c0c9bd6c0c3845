package rollout

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func limits(t *testing.T, replicas int, surge, unavailable string) Limits {
	t.Helper()
	l, err := Deployment{replicas, surge, unavailable}.Limits()
	if err != nil {
		t.Fatalf("The limits of %d replicas, maxSurge %s and maxUnavailable %s: %v", replicas, surge, unavailable, err)
	}
	return l
}

func words(plan []Resize) string {
	var parts []string
	for _, r := range plan {
		parts = append(parts, fmt.Sprintf("%s %d→%d", r.Set, r.From, r.To))
	}
	return strings.Join(parts, ", ")
}

// want checks a plan for ten replicas, with at most 13 Pods, of which at least 8 are available.
func want(t *testing.T, what, plan, why string, old []Set, current Set) {
	t.Helper()
	if got := words(Plan(Limits{10, 13, 8}, old, current)); got != plan {
		t.Fatalf("10 replicas, at most 13 Pods, at least 8 available. %s\nThe plan is %q, want %q. %s",
			what, got, plan, why)
	}
}

func Test1Limits(t *testing.T) {
	for _, c := range []struct {
		replicas           int
		surge, unavailable string
		want               Limits
	}{
		{10, "3", "2", Limits{10, 13, 8}},
		{10, "25%", "25%", Limits{10, 13, 8}},
		{4, "25%", "25%", Limits{4, 5, 3}},
		{3, "25%", "25%", Limits{3, 4, 3}},
		{3, "0", "25%", Limits{3, 3, 2}},
		{0, "25%", "25%", Limits{0, 0, 0}},
		{2, "0", "5", Limits{2, 2, 0}},
		{100, "7%", "29%", Limits{100, 107, 71}}, // As floating-point numbers, these are not 7 and 29.
	} {
		if got := limits(t, c.replicas, c.surge, c.unavailable); got != c.want {
			t.Fatalf("%d replicas, maxSurge %s, maxUnavailable %s: the limits are %+v, want %+v.\n"+
				"Round up for maxSurge and down for maxUnavailable, so that neither promises less than was asked for.",
				c.replicas, c.surge, c.unavailable, got, c.want)
		}
	}
	if _, err := (Deployment{3, "many", "1"}).Limits(); err == nil {
		t.Fatal(`maxSurge is "many", and there is no error.`)
	}
	if _, err := (Deployment{3, "1", "few%"}).Limits(); err == nil {
		t.Fatal(`maxUnavailable is "few%", and there is no error.`)
	}
}

func Test2TheNewSetGrows(t *testing.T) {
	want(t, "10 old Pods, no new ones.", "new 0→3", "More would be 14 Pods.",
		[]Set{{"old", 10, 10}}, Set{"new", 0, 0})
	want(t, "2 old Pods, 5 new ones.", "new 5→10", "The new set has room, and needs no more than 10.",
		[]Set{{"old", 2, 2}}, Set{"new", 5, 5})
	want(t, "No old Pods, 12 new ones: somebody asked for fewer.", "new 12→10", "", nil, Set{"new", 12, 12})
}

func Test3OldSetsShrink(t *testing.T) {
	want(t, "10 old Pods, 3 new ones that are not available yet.", "old 10→8", "8 must stay available.",
		[]Set{{"old", 10, 10}}, Set{"new", 3, 0})
	want(t, "8 old Pods, 5 new ones that are available.", "old 8→3", "8 of these 13 must stay.",
		[]Set{{"old", 8, 8}}, Set{"new", 5, 5})
	want(t, "10 old Pods, 5 new ones that are available: more than 13, since fewer are asked for now.", "old 10→3",
		"The new set is not larger than 10, so it does not shrink.", []Set{{"old", 10, 10}}, Set{"new", 5, 5})
	want(t, "3 old Pods, 10 new ones that are available.", "old 3→0", "The new ones are enough.",
		[]Set{{"old", 3, 3}}, Set{"new", 10, 10})
	want(t, "Two old versions with 4 and 4 Pods, 5 new ones that are available.", "older 4→0, old 4→3",
		"The oldest goes first.", []Set{{"older", 4, 4}, {"old", 4, 4}}, Set{"new", 5, 5})
}

func Test4ABrokenVersionStops(t *testing.T) {
	want(t, "8 old Pods, 5 new ones that never become available.", "",
		"If an old Pod went now, fewer than 8 would serve.", []Set{{"old", 8, 8}}, Set{"new", 5, 0})
	want(t, "8 old Pods of which 2 have just failed, 5 new ones that never become available.", "",
		"13 Pods less 8 less 5 is nothing.", []Set{{"old", 8, 6}}, Set{"new", 5, 0})
}

func Test5WhoDoesNotServeGoesFirst(t *testing.T) {
	want(t, "An older version has 4 Pods. The one after it has 4, of which none is available. 5 new ones are not "+
		"available yet. Least is 8, so nothing may go.", "",
		"", []Set{{"older", 4, 4}, {"broken", 4, 0}}, Set{"new", 5, 0})
	want(t, "An older version has 4 Pods, and the one after it 4 of which none is available. 5 new ones are.",
		"older 4→3, broken 4→0", "The broken Pods serve nobody: all 4 go, and one more, since 9 are available.",
		[]Set{{"older", 4, 4}, {"broken", 4, 0}}, Set{"new", 5, 5})
	want(t, "Two versions have 3 Pods each, of which none is available. 4 older Pods and 3 new ones are.",
		"broken 3→0, newer 3→1", "5 Pods may go. The oldest of those that serve nobody go first.",
		[]Set{{"good", 4, 4}, {"broken", 3, 0}, {"newer", 3, 0}}, Set{"new", 3, 3})
	want(t, "A broken version has 3 Pods, and the user went back, so the set with the 8 good Pods is the new one.",
		"new 8→10", "First the new set grows, as far as it goes.", []Set{{"broken", 3, 0}}, Set{"new", 8, 8})
}

func Test6DoneIsDone(t *testing.T) {
	want(t, "All 10 Pods are new and available.", "", "Nothing is to be done.",
		[]Set{{"old", 0, 0}}, Set{"new", 10, 10})
}

func Test7TheWorkedExample(t *testing.T) {
	old, current := Set{"old", 10, 10}, Set{"new", 0, 0}
	var steps []string
	for range 20 {
		plan := Plan(Limits{10, 13, 8}, []Set{old}, current)
		for _, r := range plan {
			for _, s := range []*Set{&old, &current} {
				if s.Name == r.Set {
					s.Size = r.To
					s.Available = min(s.Available, s.Size)
				}
			}
		}
		if len(plan) == 0 {
			if current.Available == current.Size {
				break
			}
			current.Available = current.Size
			steps = append(steps, "wait")
			continue
		}
		steps = append(steps, words(plan))
	}
	want := "new 0→3; old 10→8; new 3→5; wait; old 8→3; new 5→10; wait; old 3→0"
	if got := strings.Join(steps, "; "); got != want {
		t.Fatalf("The rollout of ten Pods goes\n  %s\nwant\n  %s", got, want)
	}
}

// Pods become available in any order, versions change in the middle, and the limits always hold.
func Test8EveryRolloutEnds(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		replicas := 1 + r.IntN(12)
		l := limits(t, replicas, fmt.Sprint(r.IntN(4)), fmt.Sprint(r.IntN(4)))
		sets := []Set{{"v0", replicas, replicas}}
		versions := 1 + r.IntN(3)
		for round := 0; ; round++ {
			if round > 2000 {
				t.Fatalf("Limits %+v (seed %d): the rollout does not end. There are %+v.", l, seed, sets)
			}
			if round%7 == 0 && len(sets) <= versions {
				sets = append(sets, Set{fmt.Sprintf("v%d", len(sets)), 0, 0}) // The user asks for the next version.
			}
			last := len(sets) - 1
			plan := Plan(l, append([]Set(nil), sets[:last]...), sets[last])
			apply(sets, plan)
			total, available := 0, 0
			for _, s := range sets {
				total, available = total+s.Size, available+s.Available
			}
			if total > l.Most || available < l.Least {
				t.Fatalf("Limits %+v (seed %d): after the plan %s there are %d Pods, of which %d are available: %+v.",
					l, seed, words(plan), total, available, sets)
			}
			if i := r.IntN(len(sets)); sets[i].Available < sets[i].Size {
				sets[i].Available++
			}
			if len(plan) == 0 && len(sets) > versions && sets[last].Available == replicas && total == replicas {
				break
			}
		}
	}
}

// apply carries out a plan. A ReplicaSet that shrinks first deletes Pods that are not available.
func apply(sets []Set, plan []Resize) {
	for _, r := range plan {
		for i := range sets {
			if s := &sets[i]; s.Name == r.Set {
				s.Size = r.To
				s.Available = min(s.Available, s.Size)
			}
		}
	}
}
