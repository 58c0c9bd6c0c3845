package conditions

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage is the limit on the bytes of a message. The schema of the API allows as many characters.
const maxMessage = 32768

// Set puts c into list and reports whether that changed the list. The transition time changes only if the status
// changes. It is then that of c or, if c has none, the current time. generation is the generation of the object. Set
// replaces bytes of the message that are not UTF-8, and cuts off a message that is too long, as the API does.
//
// Source: SetStatusCondition in k8s.io/apimachinery v0.37.2 pkg/api/meta/conditions.go.
func Set(list *[]metav1.Condition, generation int64, c metav1.Condition) (changed bool) {
	c.ObservedGeneration, c.Message = generation, stored(c.Message)
	old := Get(*list, c.Type)
	if old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = metav1.NewTime(time.Now().Truncate(time.Second)) // The API stores seconds.
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

// stored returns the message in the form in which the server stores it. Another form would change the condition with
// every write.
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

// Get returns a pointer to the condition of that type in list; nil if there is none.
func Get(list []metav1.Condition, conditionType string) *metav1.Condition {
	for i := range list {
		if list[i].Type == conditionType {
			return &list[i]
		}
	}
	return nil
}

// Is reports whether list has a condition of that type with that status.
func Is(list []metav1.Condition, conditionType string, status metav1.ConditionStatus) bool {
	c := Get(list, conditionType)
	return c != nil && c.Status == status
}

// Remove removes the condition of that type from list and reports whether there was one.
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

// State is the state of an object in the terms of kstatus.
type State int

const (
	// IsReady means that the object is as its spec demands.
	IsReady State = iota
	// IsReconciling means that the controller is working on it.
	IsReconciling
	// IsStalled means that the controller cannot go on until somebody changes something.
	IsStalled
)

// SetState sets all three conditions of kstatus, so that no condition of an earlier state is left. It reports whether
// that changed the list.
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

// Sort puts Stalled, Reconciling and Ready first, then the other conditions by name. It reports whether that changed
// the list.
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
