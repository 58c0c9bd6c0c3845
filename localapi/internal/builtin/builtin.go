package builtin

import (
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// All returns the definitions of all built-in types. Each call returns new values, so a caller may change them. The
// order is that of discovery: by group, the core group first.
func All() []*resource.Definition {
	events, autoscalers := events(), horizontalPodAutoscalers()
	return []*resource.Definition{
		configMap(),
		endpoints(),
		events[0],
		limitRange(),
		namespace(),
		node(),
		persistentVolumeClaim(),
		persistentVolume(),
		pod(),
		podTemplate(),
		replicationController(),
		resourceQuota(),
		secret(),
		serviceAccount(),
		service(),

		mutatingWebhookConfiguration(),
		validatingAdmissionPolicy(),
		validatingAdmissionPolicyBinding(),
		validatingWebhookConfiguration(),

		controllerRevision(),
		daemonSet(),
		deployment(),
		replicaSet(),
		statefulSet(),

		autoscalers[0],
		autoscalers[1],

		cronJob(),
		job(),

		certificateSigningRequest(),

		lease(),

		endpointSlice(),

		events[1],

		ingressClass(),
		ingress(),
		networkPolicy(),

		runtimeClass(),

		podDisruptionBudget(),

		clusterRoleBinding(),
		clusterRole(),
		roleBinding(),
		role(),

		priorityClass(),

		storageClass(),
	}
}
