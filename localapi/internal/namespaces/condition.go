package namespaces

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// fine returns the conditions of a deletion that nothing blocks, in the order in which they are reported. All of them
// are false.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/namespace/deletion/status_condition_utils.go, conditionTypes,
// okMessages.
func fine() []corev1.NamespaceCondition {
	condition := func(t corev1.NamespaceConditionType, reason, message string) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	}
	return []corev1.NamespaceCondition{
		condition(corev1.NamespaceDeletionDiscoveryFailure, "ResourcesDiscovered",
			"All resources successfully discovered"),
		condition(corev1.NamespaceDeletionGVParsingFailure, "ParsedGroupVersions",
			"All legacy kube types successfully parsed"),
		condition(corev1.NamespaceDeletionContentFailure, "ContentDeleted",
			"All content successfully deleted, may be waiting on finalization"),
		condition(corev1.NamespaceContentRemaining, "ContentRemoved", "All content successfully removed"),
		condition(corev1.NamespaceFinalizersRemaining, "ContentHasNoFinalizers",
			"All content-preserving finalizers finished"),
	}
}

// conditions returns what a pass found out as conditions.
//
// While there are pods, it reports neither that content remains nor that finalizers do, like kube-controller-manager.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/namespace/deletion/status_condition_utils.go.
func (c contents) conditions() []corev1.NamespaceCondition {
	all := fine()
	set := func(t corev1.NamespaceConditionType, reason, message string) {
		i := slices.IndexFunc(all, func(c corev1.NamespaceCondition) bool { return c.Type == t })
		all[i] = corev1.NamespaceCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message}
	}
	if c.discovery != nil {
		set(corev1.NamespaceDeletionDiscoveryFailure, "DiscoveryFailed", discoveryMessage(c.discovery))
	}
	if c.parsing != nil {
		set(corev1.NamespaceDeletionGVParsingFailure, "GroupVersionParsingFailed", c.parsing.Error())
	}
	if n := len(c.failed); n > 0 {
		set(corev1.NamespaceDeletionContentFailure, "ContentDeletionFailed",
			fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", n,
				strings.Join(sortedMessages(c.failed), ", ")))
	}
	if c.podsFirst {
		return all
	}
	if len(c.remaining) > 0 {
		var list []string
		for r, n := range c.remaining {
			list = append(list, fmt.Sprintf("%s.%s has %d resource instances", r.Resource, r.Group, n))
		}
		slices.Sort(list)
		set(corev1.NamespaceContentRemaining, "SomeResourcesRemain", "Some resources are remaining: "+
			strings.Join(list, ", "))
	}
	if len(c.finalizers) > 0 {
		var list []string
		for _, f := range slices.Sorted(maps.Keys(c.finalizers)) {
			list = append(list, fmt.Sprintf("%s in %d resource instances", f, c.finalizers[f]))
		}
		set(corev1.NamespaceFinalizersRemaining, "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+strings.Join(list, ", "))
	}
	return all
}

func discoveryMessage(err error) string {
	var partial *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partial) {
		return fmt.Sprintf("Discovery failed for some groups, %d failing: %v", len(partial.Groups), err)
	}
	return err.Error()
}

func sortedMessages(failures []failure) []string {
	messages := make([]string, len(failures))
	for i, f := range failures {
		messages[i] = f.err.Error()
	}
	slices.Sort(messages)
	return messages
}

// setConditions sets the wanted conditions in a status, and reports whether that changed anything. A condition keeps
// the time of its last transition until its status changes.
func setConditions(status *corev1.NamespaceStatus, wanted []corev1.NamespaceCondition, now metav1.Time) bool {
	changed := false
	for _, want := range wanted {
		want.LastTransitionTime = now
		i := slices.IndexFunc(status.Conditions, func(c corev1.NamespaceCondition) bool { return c.Type == want.Type })
		if i < 0 {
			status.Conditions = append(status.Conditions, want)
			changed = true
			continue
		}
		have := &status.Conditions[i]
		if have.Status == want.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
		if have.Status != want.Status || have.Reason != want.Reason || have.Message != want.Message {
			*have, changed = want, true
		}
	}
	return changed
}
