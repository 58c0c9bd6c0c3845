package stock

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
)

// The reasons of conditions.
const (
	ReasonWaiting         = "WaitingForNumber"
	ReasonNumbered        = "Numbered"
	ReasonShelved         = "Shelved"
	ReasonNameTooLong     = "NameTooLong"
	ReasonNoCategory      = "CategoryMissing"
	ReasonCategoryGoing   = "CategoryGoing"
	ReasonCategoryStalled = "CategoryStalled"
	ReasonCounted         = "Counted"
	ReasonOverdue         = "CountTooOld"
	ReasonInOrder         = "InOrder"
	ReasonPrefixTaken     = "PrefixTaken"
	ReasonInUse           = "InUse"
	ReasonFits            = "Fits"
	ReasonTooMany         = "TooMany"
)

// itemState is what an item's status is computed from.
type itemState struct {
	category *api.Category // nil: it does not exist
	labelled bool          // its label is up to date
	now      time.Time
}

// planItem returns the next status, and when to look again, 0 meaning never. An item moves one step at a time, so that
// each step is a write.
func planItem(item *api.Item, s itemState) (status api.ItemStatus, again time.Duration) {
	status = item.DeepCopy().Status
	status.Value = item.Spec.Quantity * item.Spec.UnitPrice
	if status.ObservedGeneration != item.Generation || status.LastCounted == nil {
		counted := metav1.NewTime(s.now.Truncate(time.Second))
		status.LastCounted, status.ObservedGeneration = &counted, item.Generation
	}
	again = planRecount(item, &status, s.now)
	if status.Phase == "" {
		status.Phase = api.Registered
		setState(&status.Conditions, item.Generation, conditions.IsReconciling, ReasonWaiting,
			"the item has no number yet")
		return status, again
	}
	sku, state, reason, message := planNumber(item, s.category)
	switch {
	case sku == "":
		status.Phase, status.SKU, status.Shelf = api.Registered, "", ""
	case status.SKU != sku || status.Shelf != s.category.Spec.Shelf:
		status.Phase, status.SKU, status.Shelf = api.Numbered, sku, s.category.Spec.Shelf
	case s.labelled:
		status.Phase, state, reason = api.Shelved, conditions.IsReady, ReasonShelved
		message = "labelled and on the shelf"
	default:
		status.Phase = api.Numbered
	}
	setState(&status.Conditions, item.Generation, state, reason, message)
	return status, again
}

// planNumber returns the SKU that the category gives the item, or "" if it has none yet or never will.
func planNumber(item *api.Item, category *api.Category) (sku string, state conditions.State, reason, message string) {
	name := item.Spec.Category
	if len(item.Name) > validation.LabelValueMaxLength {
		return "", conditions.IsStalled, ReasonNameTooLong, fmt.Sprintf(
			"the name has %d bytes; a label refers to it, and may have %d", len(item.Name),
			validation.LabelValueMaxLength)
	}
	if category == nil {
		return "", conditions.IsStalled, ReasonNoCategory, fmt.Sprintf("there is no category %s", name)
	}
	number, has := category.Status.Numbers[item.Name]
	stalled := conditions.Get(category.Status.Conditions, conditions.Stalled)
	switch {
	case has:
		return fmt.Sprintf("%s-%04d", category.Spec.Prefix, number), conditions.IsReconciling, ReasonNumbered,
			"the item needs its label"
	case category.DeletionTimestamp != nil:
		return "", conditions.IsStalled, ReasonCategoryGoing, fmt.Sprintf("category %s is being deleted", name)
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return "", conditions.IsStalled, ReasonCategoryStalled, fmt.Sprintf("category %s: %s", name, stalled.Message)
	}
	return "", conditions.IsReconciling, ReasonWaiting, "the item has no number yet"
}

// planRecount records whether the count is due, and returns the time until it is.
func planRecount(item *api.Item, status *api.ItemStatus, now time.Time) (again time.Duration) {
	if item.Spec.RecountEvery == nil {
		conditions.Remove(&status.Conditions, api.RecountDue)
		return 0
	}
	c := metav1.Condition{
		Type: api.RecountDue, Status: metav1.ConditionFalse, Reason: ReasonCounted,
		Message: "the count is recent",
	}
	again = status.LastCounted.Add(item.Spec.RecountEvery.Duration).Sub(now)
	if again <= 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonOverdue,
			fmt.Sprintf("the last count is older than %v", item.Spec.RecountEvery.Duration)
		again = 0
	}
	conditions.Set(&status.Conditions, item.Generation, c)
	return again
}

// planCategory returns the status of a category with these items. elder is the older category that has its prefix, or
// nil.
func planCategory(category, elder *api.Category, items []api.Item) api.CategoryStatus {
	status := category.DeepCopy().Status
	status.ObservedGeneration = category.Generation
	status.Items, status.Quantity, status.Value = int64(len(items)), 0, 0
	for _, item := range items {
		status.Quantity += item.Spec.Quantity
		status.Value += item.Spec.Quantity * item.Spec.UnitPrice
	}
	if elder == nil {
		planNumbers(&status, items, category.DeletionTimestamp == nil)
	}
	switch generation := category.Generation; {
	case category.DeletionTimestamp != nil:
		setState(&status.Conditions, generation, conditions.IsReconciling, ReasonInUse,
			fmt.Sprintf("being deleted, but %d items refer to it", len(items)))
	case elder != nil:
		setState(&status.Conditions, generation, conditions.IsStalled, ReasonPrefixTaken,
			fmt.Sprintf("category %s has the prefix %s", elder.Name, category.Spec.Prefix))
	default:
		setState(&status.Conditions, generation, conditions.IsReady, ReasonInOrder, "every item has a number")
	}
	limit := metav1.Condition{
		Type: api.OverLimit, Status: metav1.ConditionFalse, Reason: ReasonFits,
		Message: "everything fits on the shelf",
	}
	if category.Spec.Limit > 0 && status.Quantity > category.Spec.Limit {
		limit.Status, limit.Reason = metav1.ConditionTrue, ReasonTooMany
		limit.Message = fmt.Sprintf("%d pieces, and the shelf holds %d", status.Quantity, category.Spec.Limit)
	}
	conditions.Set(&status.Conditions, category.Generation, limit)
	return status
}

// planNumbers drops the numbers of items that are gone, and gives the next numbers to new items, the oldest first.
func planNumbers(status *api.CategoryStatus, items []api.Item, admit bool) {
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b api.Item) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	numbers := make(map[string]int64, len(items))
	for _, item := range items {
		number, has := status.Numbers[item.Name]
		switch {
		case has:
			numbers[item.Name] = number
		case admit && item.DeletionTimestamp == nil:
			status.Issued++
			numbers[item.Name] = status.Issued
		}
	}
	if status.Numbers = numbers; len(numbers) == 0 {
		status.Numbers = nil
	}
}

// elderOf returns the older category among all that has the same prefix, or nil if there is none. A category that is
// being deleted keeps its prefix until it is gone, because its items have SKUs.
func elderOf(category *api.Category, all []api.Category) (elder *api.Category) {
	for i := range all {
		other := &all[i]
		if other.UID == category.UID || other.Spec.Prefix != category.Spec.Prefix {
			continue
		}
		if olderThan(other, category) && (elder == nil || olderThan(other, elder)) {
			elder = other
		}
	}
	return elder
}

func olderThan(a, b *api.Category) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

func setState(list *[]metav1.Condition, generation int64, s conditions.State, reason, message string) {
	conditions.SetState(list, generation, s, reason, message)
}
