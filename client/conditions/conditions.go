package conditions

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage is the length in bytes at which messages are cut. The API's schema allows as many characters.
const maxMessage = 32768

// Set puts c into list, and reports whether that changed anything. The time of a condition is that of the last change
// of its status; c's own time counts, if it is set. generation is that of the object. The message is stored as the API
// stores it: without bytes that are not UTF-8, and cut off if it is too long.
//
// Source: SetStatusCondition in k8s.io/apimachinery v0.37.2 pkg/api/meta/conditions.go.
func Set(list *[]metav1.Condition, generation int64, c metav1.Condition) (changed bool) {
	c.ObservedGeneration, c.Message = generation, stored(c.Message)
	old := Get(*list, c.Type)
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = metav1.NewTime(time.Now().Truncate(time.Second)) // As precise as the API stores it.
	}
	if old == nil {
		*list = append(*list, c)
		return true
	}
	changed = !old.LastTransitionTime.Equal(&c.LastTransitionTime) || old.Status != c.Status ||
		old.Reason != c.Reason ||
		old.Message != c.Message || old.ObservedGeneration != c.ObservedGeneration
	*old = c
	return changed
}

// stored returns the message as the server will store it. If it differed from what Set compares, the condition would
// change with every write.
func stored(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}

// Get returns the condition of a type, in place; nil if there is none.
func Get(list []metav1.Condition, conditionType string) *metav1.Condition {
	for i := range list {
		if list[i].Type == conditionType {
			return &list[i]
		}
	}
	return nil
}

// Is says whether the condition of a type has the status.
func Is(list []metav1.Condition, conditionType string, status metav1.ConditionStatus) bool {
	c := Get(list, conditionType)
	return c != nil && c.Status == status
}

// Remove takes the condition of a type out of list, and says whether it was there.
func Remove(list *[]metav1.Condition, conditionType string) (changed bool) {
	before := len(*list)
	*list = slices.DeleteFunc(*list, func(c metav1.Condition) bool { return c.Type == conditionType })
	return len(*list) != before
}

// The conditions of kstatus.
//
// Source: sigs.k8s.io/cli-utils pkg/kstatus.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
)

// State is where an object is, as kstatus sees it.
type State int

const (
	// IsReady: the object is as it was asked for.
	IsReady State = iota
	// IsReconciling: it is being made so.
	IsReconciling
	// IsStalled: it cannot be made so before somebody changes something.
	IsStalled
)

// SetState sets all three conditions of kstatus, so that none is left over from a state before: a stall whose cause
// is gone is gone. It says whether anything changed.
func SetState(list *[]metav1.Condition, generation int64, s State, reason, message string) (changed bool) {
	status := map[State]map[string]metav1.ConditionStatus{
		IsReady: {
			Stalled: metav1.ConditionFalse, Reconciling: metav1.ConditionFalse,
			Ready: metav1.ConditionTrue,
		},
		IsReconciling: {
			Stalled: metav1.ConditionFalse, Reconciling: metav1.ConditionTrue,
			Ready: metav1.ConditionUnknown,
		},
		IsStalled: {Stalled: metav1.ConditionTrue, Reconciling: metav1.ConditionFalse, Ready: metav1.ConditionFalse},
	}[s]
	for _, name := range []string{Stalled, Reconciling, Ready} {
		c := metav1.Condition{Type: name, Status: status[name], Reason: reason, Message: message}
		changed = Set(list, generation, c) || changed
	}
	return Sort(*list) || changed
}

// Sort puts Stalled, Reconciling and Ready first, and the others behind by name; it says whether that changed anything.
func Sort(list []metav1.Condition) (changed bool) {
	rank := func(c metav1.Condition) int {
		if i := slices.Index([]string{Stalled, Reconciling, Ready}, c.Type); i >= 0 {
			return i
		}
		return 3
	}
	order := func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Type, b.Type))
	}
	if slices.IsSortedFunc(list, order) {
		return false
	}
	slices.SortStableFunc(list, order)
	return true
}
