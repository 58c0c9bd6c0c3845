package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client/conditions"
)

// The reasons of the conditions Ready, Reconciling and Stalled.
const (
	ReasonReconciling    = "Reconciling"
	ReasonReconciled     = "Reconciled"
	ReasonOrphansCleaned = "OrphansCleaned"
	ReasonCleanupFailed  = "CleanupFailed"
	ReasonInvalidRange   = "InvalidRange"
	ReasonPoolCreated    = "PoolCreated"
	ReasonPoolUpdated    = "PoolUpdated"
	ReasonPoolFull       = "PoolFull"
	ReasonMismatch       = "Mismatch"
	ReasonInvalidConfig  = "InvalidConfig"
	ReasonNetworkGone    = "NetworkGone"
	ReasonValidated      = "Validated"
	ReasonNoPodRef       = "NoPodRef"
)

// Further conditions of an IPPool. They exist, with status True, only while there is something to report.
const (
	// RangeOverlap means that another pool of the network has some of the addresses.
	RangeOverlap = "RangeOverlap"
	// NetworkStatusUnreadable means that the network status of some Pods is malformed.
	NetworkStatusUnreadable = "NetworkStatusUnreadable"
)

// state is the state of an object, and the reason for it. A pass computes it once and compares it with what is stored.
type state struct {
	is              conditions.State
	reason, message string
}

func ready(reason, format string, args ...any) state {
	return state{conditions.IsReady, reason, fmt.Sprintf(format, args...)}
}

func reconciling(reason, format string, args ...any) state {
	return state{conditions.IsReconciling, reason, fmt.Sprintf(format, args...)}
}

func stalled(reason, format string, args ...any) state {
	return state{conditions.IsStalled, reason, fmt.Sprintf(format, args...)}
}

// set writes the state into the conditions, and reports whether that is a change.
func (s state) set(list *[]metav1.Condition, generation int64) (news bool) {
	old := conditions.Get(*list, conditions.Ready)
	news = old == nil || old.Reason != s.reason || old.Message != s.message
	conditions.SetState(list, generation, s.is, s.reason, s.message, conditions.OnAnyChange)
	return news
}

// eventType returns Warning if a user has to attend to the state.
func (s state) eventType() string {
	if s.is == conditions.IsReady {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// announced returns the state that reports what an earlier pass did, as long as it is shown, and the remaining time.
// Conditions have a resolution of a second, so the time may exceed showFor by one.
func announced(list []metav1.Condition, showFor time.Duration) (s state, rest time.Duration) {
	c := conditions.Get(list, conditions.Ready)
	if c == nil || c.Status != metav1.ConditionTrue ||
		!slices.Contains([]string{ReasonOrphansCleaned, ReasonPoolCreated, ReasonPoolUpdated}, c.Reason) {
		return state{}, 0
	}
	if showFor == 0 {
		return state{}, 0
	}
	return ready(c.Reason, "%s", c.Message), showFor + time.Second - time.Since(c.LastTransitionTime.Time)
}

// warn sets a condition that exists while message is not empty, and reports whether the change is worth an event.
func warn(list *[]metav1.Condition, generation int64, conditionType, message string) (news bool) {
	if message == "" {
		conditions.Remove(list, conditionType)
		return false
	}
	old := conditions.Get(*list, conditionType)
	news = old == nil || old.Message != message
	c := metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: conditionType, Message: message}
	conditions.Set(list, generation, c, conditions.OnStatus)
	conditions.Sort(*list)
	return news
}

// some returns the first of many names, sorted.
func some(names []string) string {
	const most = 5
	slices.Sort(names)
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
