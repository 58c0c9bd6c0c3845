// Package restart decides which containers are started again after they ended. The server validates the statuses of
// pods by it, and the fake kubelet follows it.
package restart

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Allowed reports whether a container of a pod is started again after it ended with the given exit code: by its rules,
// by its own policy if it has one, or by that of the pod.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/pod/util.go, ContainerShouldRestart
func Allowed(pod *corev1.PodSpec, c *corev1.Container, code int32) bool {
	policy := pod.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
		for _, rule := range c.RestartPolicyRules {
			if on := rule.ExitCodes; on != nil &&
				slices.Contains(on.Values, code) == (on.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
				return true
			}
		}
	}
	return policy != corev1.RestartPolicyNever && (policy != corev1.RestartPolicyOnFailure || code != 0)
}

// AllAllowed reports whether a rule of one container may start all containers again.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/pod/util.go, AllContainersCouldRestart
func AllAllowed(pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(rule corev1.ContainerRestartRule) bool {
			return rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	})
}
