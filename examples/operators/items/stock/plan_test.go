package stock

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func itemOf(category string) *api.Item {
	return &api.Item{
		ObjectMeta: metav1.ObjectMeta{Name: "hammer", Generation: 1},
		Spec:       api.ItemSpec{Category: category, Quantity: 3, UnitPrice: 7},
	}
}

func categoryWith(numbers map[string]int64) *api.Category {
	return &api.Category{
		ObjectMeta: metav1.ObjectMeta{Name: "tools", UID: "tools"},
		Spec:       api.CategorySpec{Prefix: "TL", Shelf: "A1"},
		Status:     api.CategoryStatus{Numbers: numbers},
	}
}

// TestItemTakesOneStepAtATime: from nothing to the shelf, a write for each step; what has been done is not done again.
func TestItemTakesOneStepAtATime(t *testing.T) {
	item, state := itemOf("tools"), itemState{now: noon}
	step := func(want api.Phase, state itemState, stalled bool, reason string) {
		t.Helper()
		status, _ := planItem(item, state)
		item.Status = status
		about := conditions.Ready
		if stalled {
			about = conditions.Stalled
		}
		if c := conditions.Get(status.Conditions, about); status.Phase != want || c == nil || c.Reason != reason {
			t.Errorf("%+v, want %s and %s", status, want, reason)
		}
	}
	step(api.Registered, state, false, ReasonWaiting)
	step(api.Registered, state, true, ReasonNoCategory)
	state.category = categoryWith(nil)
	step(api.Registered, state, false, ReasonWaiting)
	state.category.Status.Numbers = map[string]int64{"hammer": 12}
	step(api.Numbered, state, false, ReasonNumbered)
	step(api.Numbered, state, false, ReasonNumbered)
	state.labelled = true
	step(api.Shelved, state, false, ReasonShelved)
	if s := item.Status; s.SKU != "TL-0012" || s.Shelf != "A1" || s.Value != 21 || s.ObservedGeneration != 1 {
		t.Errorf("status %+v", s)
	}
	state.category.Spec.Shelf = "B2"
	step(api.Numbered, state, false, ReasonNumbered) // a new label is needed
	step(api.Shelved, state, false, ReasonShelved)
	now := metav1.NewTime(noon)
	state.category.Status.Numbers, state.category.DeletionTimestamp = nil, &now
	step(api.Registered, state, true, ReasonCategoryGoing)
	if item.Status.SKU != "" {
		t.Errorf("the item keeps the number that it lost: %+v", item.Status)
	}
	state.category.DeletionTimestamp = nil
	setState(&state.category.Status.Conditions, 1, conditions.IsStalled, ReasonPrefixTaken,
		"category x has the prefix TL")
	step(api.Registered, state, true, ReasonCategoryStalled)
}

// TestRecount: a count is believed for as long as was said, and every change counts as one.
func TestRecount(t *testing.T) {
	item := itemOf("tools")
	item.Spec.RecountEvery = &metav1.Duration{Duration: time.Hour}
	look := func(after time.Duration, due metav1.ConditionStatus, again time.Duration) {
		t.Helper()
		status, got := planItem(item, itemState{now: noon.Add(after)})
		item.Status = status
		if !conditions.Is(status.Conditions, api.RecountDue, due) || got != again {
			t.Errorf("after %v: again in %v, %+v; want %v and %s", after, got, status.Conditions, again, due)
		}
	}
	look(0, metav1.ConditionFalse, time.Hour)
	look(40*time.Minute, metav1.ConditionFalse, 20*time.Minute)
	look(time.Hour, metav1.ConditionTrue, 0)
	look(3*time.Hour, metav1.ConditionTrue, 0)
	item.Generation++
	look(3*time.Hour, metav1.ConditionFalse, time.Hour)
	item.Spec.RecountEvery = nil
	if status, again := planItem(item, itemState{now: noon}); again != 0 ||
		conditions.Get(status.Conditions, api.RecountDue) != nil {
		t.Errorf("again in %v, %+v", again, status.Conditions)
	}
}

// TestNumbersAreGivenOnce: however items come and go, in whatever order and company they are seen, no number is given
// twice, and nobody's number changes.
func TestNumbersAreGivenOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		category, live := categoryWith(nil), map[string]api.Item{}
		for step := range 60 {
			name := fmt.Sprintf("i%d", random.IntN(10))
			if _, there := live[name]; there && random.IntN(2) == 0 {
				delete(live, name)
			} else if !there {
				created := metav1.NewTime(noon.Add(time.Duration(random.IntN(3)) * time.Second))
				live[name] = api.Item{
					ObjectMeta: metav1.ObjectMeta{
						Name: name, UID: types.UID(fmt.Sprint(step)),
						CreationTimestamp: created,
					},
				}
			}
			if random.IntN(3) > 0 {
				continue // the controller does not see every state
			}
			var items []api.Item
			for _, item := range live {
				items = append(items, item)
			}
			before := maps.Clone(category.Status.Numbers)
			category.Status = planCategory(category, nil, items)
			seen := map[int64]bool{}
			for name, number := range category.Status.Numbers {
				if seen[number] || number < 1 || number > category.Status.Issued || before[name] != 0 &&
					before[name] != number {
					t.Fatalf("%v after %v", category.Status.Numbers, before)
				}
				seen[number] = true
			}
			if len(category.Status.Numbers) != len(items) || category.Status.Items != int64(len(items)) {
				t.Fatalf("%d items, %+v", len(items), category.Status)
			}
		}
	}
}

// TestNameThatIsTooLong: a label cannot refer to such an item.
func TestNameThatIsTooLong(t *testing.T) {
	item := itemOf("tools")
	item.Name, item.Status.Phase = strings.Repeat("n", 64), api.Registered
	status, _ := planItem(item, itemState{now: noon, category: categoryWith(map[string]int64{item.Name: 1})})
	if c := conditions.Get(status.Conditions, conditions.Stalled); c == nil || c.Reason != ReasonNameTooLong ||
		status.SKU != "" {
		t.Errorf("%+v", status)
	}
}

// TestCategoryStates: who has a prefix, what does not fit, and what is going.
func TestCategoryStates(t *testing.T) {
	category, now := categoryWith(nil), metav1.NewTime(noon)
	category.CreationTimestamp = now
	older, younger := *categoryWith(nil), *categoryWith(nil)
	older.Name, older.UID, older.CreationTimestamp = "older", "older", metav1.NewTime(noon.Add(-time.Second))
	younger.Name, younger.UID, younger.CreationTimestamp = "zz", "zz", now
	foreign := older
	foreign.Name, foreign.UID, foreign.Spec.Prefix = "foreign", "foreign", "FO"
	if e := elderOf(category, []api.Category{younger, *category, foreign}); e != nil {
		t.Errorf("elder is %s, want none", e.Name)
	}
	elder := elderOf(category, []api.Category{younger, *category, older, foreign})
	if elder == nil || elder.Name != "older" {
		t.Fatalf("elder is %+v", elder)
	}
	item := *itemOf("tools")
	if s := planCategory(category, elder, []api.Item{item}); !conditions.Is(s.Conditions, conditions.Stalled,
		metav1.ConditionTrue) || len(s.Numbers) != 0 || s.Quantity != 3 {
		t.Errorf("under an elder: %+v", s)
	}
	category.Spec.Limit = 2
	if s := planCategory(category, nil, []api.Item{item}); !conditions.Is(s.Conditions, api.OverLimit,
		metav1.ConditionTrue) || !conditions.Is(s.Conditions, conditions.Ready, metav1.ConditionTrue) {
		t.Errorf("over the limit: %+v", s)
	}
	category.DeletionTimestamp = &now
	if s := planCategory(category, nil, []api.Item{item}); len(s.Numbers) != 0 ||
		!conditions.Is(s.Conditions, conditions.Reconciling, metav1.ConditionTrue) {
		t.Errorf("going: %+v", s)
	}
}
