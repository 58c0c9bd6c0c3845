package stock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
	"github.com/flyball-dev/flyball/examples/operators/items/stock"
)

// TestThreeSteps: an item that is there before its category, and before the manager, ends on its shelf; each step is
// one write.
func TestThreeSteps(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lag.Store(int64(20 * time.Millisecond))
		w.addItem("hammer", "tools")
		l := w.start(stock.Options{})
		w.settle()
		w.stalled(w.item("hammer").Status.Conditions, stock.ReasonNoCategory)
		from := w.mark()
		w.addCategory("tools", "TL")
		w.settle()
		w.shelved("hammer", "TL-0001")
		if c := w.category("tools"); c.Status.Items != 1 || c.Status.Quantity != 1 || c.Status.Value != 10 ||
			!conditions.Is(c.Status.Conditions, conditions.Ready, metav1.ConditionTrue) {
			t.Errorf("category: %+v", c.Status)
		}
		want := []string{
			"create categories tools",
			"update categories tools status", // the number
			"update items hammer status",     // numbered
			"create configmaps hammer-label",
			"update items hammer status", // shelved
		}
		got := slices.DeleteFunc(w.writes(from),
			func(line string) bool { return line == "patch categories tools" || line == "update categories tools" })
		// Before its number is known the item says that it waits for it, unless that comes first.
		if i := slices.Index(got, "update items hammer status"); i >= 0 && len(got) == len(want)+1 {
			got = slices.Delete(got, i, i+1)
		}
		if !slices.Equal(got, want) {
			t.Errorf("writes %q, want %q", got, want)
		}
		if want := []string{"hammer CategoryMissing", "hammer Shelved"}; !slices.Equal(w.reasons(), want) {
			t.Errorf("events %q, want %q", w.reasons(), want)
		}
		l.end()
	})
}

// TestNothingToDo: hours without changes, and new processes in it, write nothing; nor do status updates of items
// reach categories.
func TestNothingToDo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.addCategory("tools", "TL")
		for i := range 20 {
			w.addItem(fmt.Sprintf("i%02d", i), "tools")
		}
		l := w.start(stock.Options{})
		w.settle()
		w.shelved("i19", "TL-0020")
		w.api.AssertNoWrites(func() {
			time.Sleep(4 * time.Hour)
			l.end()
			for range 3 {
				l = w.start(stock.Options{})
				time.Sleep(time.Hour)
				l.end()
			}
		})
		l = w.start(stock.Options{})
		items, categories, from := l.reconciles("item"), l.reconciles("category"), w.mark()
		if items < 20 || categories < 1 {
			t.Fatalf("%d and %d reconciles at the start: both controllers should look at what there is", items,
				categories)
		}
		i := w.item("i07")
		i.Status.Value = 4711 // somebody's mistake
		w.must(w.Status().Update(w.ctx, i))
		w.settle()
		if got := w.item("i07").Status.Value; got != 10 {
			t.Errorf("the value stays at %d", got)
		}
		if got := l.reconciles("category") - categories; got != 0 {
			t.Errorf("updates of an item's status caused %d reconciles of categories", got)
		}
		if got := l.reconciles("item") - items; got < 2 || got > 3 {
			t.Errorf("%d reconciles of items, want one for the mistake and one for the correction", got)
		}
		if got := w.writes(from); len(got) != 2 {
			t.Errorf("writes %q", got)
		}
		l.end()
	})
}

// TestLabelsAreKept: a label that was changed, has lost its mark, or was deleted is put right, each by one write; one
// of somebody else is not touched, and the item waits for its name.
func TestLabelsAreKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.addCategory("tools", "TL")
		w.addItem("hammer", "tools")
		foreign := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "saw-label"},
			Data:       map[string]string{"mine": "yes"},
		}
		w.must(w.Create(w.ctx, foreign))
		l := w.start(stock.Options{})
		w.settle()
		w.shelved("hammer", "TL-0001")
		for what, change := range map[string]func(*corev1.ConfigMap) error{
			"edited":  func(cm *corev1.ConfigMap) error { cm.Data["sku"] = "XX"; return w.Update(w.ctx, cm) },
			"removed": func(cm *corev1.ConfigMap) error { return w.Delete(w.ctx, cm) },
			"without its mark": func(cm *corev1.ConfigMap) error {
				cm.Labels = nil
				return w.Update(w.ctx, cm)
			},
		} {
			cm, err := w.label("hammer")
			w.must(err)
			from := w.mark()
			w.must(change(cm))
			w.settle()
			w.shelved("hammer", "TL-0001")
			if got := w.writes(from); len(got) != 2 {
				t.Errorf("%s: writes %q, want one beside it", what, got)
			}
		}
		w.addItem("saw", "tools")
		w.settle()
		if s := w.item("saw").Status; s.Phase != api.Numbered {
			t.Errorf("beside a foreign label: %+v", s)
		}
		if cm, err := w.label("saw"); err != nil || cm.Data["mine"] != "yes" || len(cm.OwnerReferences) != 0 {
			t.Errorf("the foreign one is now %+v, %v", cm, err)
		}
		w.must(w.Delete(w.ctx, foreign))
		w.settle()
		w.shelved("saw", "TL-0002")
		items := l.reconciles("item")
		controller := true
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "theirs", Labels: map[string]string{stock.ItemLabel: "hammer"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Secret", Name: "hammer", UID: "x", Controller: &controller},
			},
		}}
		w.must(w.Create(w.ctx, other))
		w.settle()
		if got := l.reconciles("item") - items; got != 0 {
			t.Errorf("a child of another kind of owner caused %d reconciles", got)
		}
		l.end()
	})
}

// TestPrinterThatFails: it is asked again, with growing pauses, and the item is numbered meanwhile, not shelved.
func TestPrinterThatFails(t *testing.T) {
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		var at []time.Duration
		began := time.Now()
		l := w.start(stock.Options{Print: func(context.Context, string, string) error {
			mu.Lock()
			defer mu.Unlock()
			if at = append(at, time.Since(began)); len(at) <= 4 {
				return errPrinter
			}
			return nil
		}})
		w.addCategory("tools", "TL")
		w.addItem("hammer", "tools")
		w.settle()
		w.shelved("hammer", "TL-0001")
		mu.Lock()
		defer mu.Unlock()
		if len(at) != 5 {
			t.Fatalf("printed %d times, want 4 failures and a success", len(at))
		}
		// What the item's own writes cause may come before the first pauses are over.
		if pause, last := at[3]-at[2], at[4]-at[3]; pause <= 0 || last <= pause {
			t.Errorf("tried at %v: the pauses do not grow", at)
		}
		l.end()
	})
}

// TestMovingAndGoing: an item that moves gets a number there, and a new label, and its old number is not given again;
// one that goes takes its label along.
func TestMovingAndGoing(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.start(stock.Options{})
		w.addCategory("tools", "TL")
		w.addCategory("paint", "PT", func(c *api.Category) { c.Spec.Shelf, c.Spec.Limit = "C3", 3 })
		w.addItem("brush", "tools")
		w.addItem("hammer", "tools")
		w.settle()
		brush := w.item("brush")
		brush.Spec.Category, brush.Spec.Quantity = "paint", 5
		w.must(w.Update(w.ctx, brush))
		w.settle()
		w.shelved("brush", "PT-0001")
		if cm, err := w.label("brush"); err != nil || cm.Data["text"] != "brush / shelf C3" {
			t.Errorf("label %+v, %v", cm, err)
		}
		if c := w.category("paint"); c.Status.Quantity != 5 ||
			!conditions.Is(c.Status.Conditions, api.OverLimit, metav1.ConditionTrue) {
			t.Errorf("five pieces on a shelf for three: %+v", c.Status)
		}
		w.removeItem("hammer")
		w.settle()
		if _, err := w.label("hammer"); !apierrors.IsNotFound(err) {
			t.Errorf("the label of what is gone: %v", err)
		}
		if c := w.category("tools"); c.Status.Items != 0 || c.Status.Numbers != nil || c.Status.Issued != 2 {
			t.Errorf("an empty category: %+v", c.Status)
		}
		w.addItem("saw", "tools")
		w.settle()
		w.shelved("saw", "TL-0003")
		l.end()
	})
}

// TestCategoryInUse: a category whose items are there stays until the last has gone, and takes in no more.
func TestCategoryInUse(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.start(stock.Options{})
		w.addCategory("tools", "TL")
		w.addItem("hammer", "tools")
		w.addItem("saw", "tools")
		w.settle()
		w.must(w.Delete(w.ctx, w.category("tools")))
		w.settle()
		w.addItem("late", "tools")
		w.settle()
		w.stalled(w.item("late").Status.Conditions, stock.ReasonCategoryGoing)
		w.removeItem("late")
		w.removeItem("saw")
		w.settle()
		w.shelved("hammer", w.item("hammer").Status.SKU)
		if c := w.category("tools"); c.Status.Items != 1 ||
			!conditions.Is(c.Status.Conditions, conditions.Reconciling, metav1.ConditionTrue) {
			t.Errorf("in use: %+v", c.Status)
		}
		w.removeItem("hammer")
		w.settle()
		var gone api.Category
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "tools"},
			&gone); !apierrors.IsNotFound(err) {
			t.Errorf("it is still there: %v", err)
		}
		l.end()
	})
}

// TestPrefixIsTaken: of two categories with a prefix the older one has it; when that goes, the other's items get
// their numbers.
func TestPrefixIsTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.start(stock.Options{})
		w.addCategory("tools", "TL")
		w.settle()
		w.addCategory("toys", "TL")
		w.addItem("ball", "toys")
		w.settle()
		w.stalled(w.category("toys").Status.Conditions, stock.ReasonPrefixTaken)
		w.stalled(w.item("ball").Status.Conditions, stock.ReasonCategoryStalled)
		w.must(w.Delete(w.ctx, w.category("tools")))
		w.settle()
		w.shelved("ball", "TL-0001")
		if want := []string{"ball CategoryStalled", "ball Shelved", "toys PrefixTaken"}; !slices.Equal(w.reasons(),
			want) {
			t.Errorf("events %q, want %q", w.reasons(), want)
		}
		l.end()
	})
}

// TestRecountComesDue: by the clock alone, once, in a process that began after the count too.
func TestRecountComesDue(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.start(stock.Options{})
		w.addCategory("tools", "TL")
		w.addItem("hammer", "tools",
			func(i *api.Item) { i.Spec.RecountEvery = &metav1.Duration{Duration: 3 * time.Hour} })
		time.Sleep(2 * time.Hour)
		l.end()
		l = w.start(stock.Options{})
		due := func(want metav1.ConditionStatus) {
			t.Helper()
			if !conditions.Is(w.item("hammer").Status.Conditions, api.RecountDue, want) {
				t.Errorf("%v: %+v, want RecountDue %s", time.Now(), w.item("hammer").Status.Conditions, want)
			}
		}
		time.Sleep(30 * time.Minute)
		due(metav1.ConditionFalse)
		from := w.mark()
		time.Sleep(5 * time.Hour)
		due(metav1.ConditionTrue)
		if got := w.writes(from); len(got) != 1 {
			t.Errorf("writes %q, want one", got)
		}
		hammer := w.item("hammer")
		hammer.Spec.Quantity = 7
		w.must(w.Update(w.ctx, hammer))
		w.settle()
		due(metav1.ConditionFalse)
		l.end()
	})
}
