package builtin

import (
	"github.com/flyball-dev/flyball/localapi/resource"
)

// All returns the definitions of all built-in types. Each call returns new values, so a caller may change them. The
// order is that of discovery: by group, the core group first.
func All() []*resource.Definition {
	return []*resource.Definition{
		configMap(),
		endpoints(),
		event(),
		namespace(),
		node(),
		persistentVolumeClaim(),
		pod(),
		secret(),
		serviceAccount(),
		service(),

		controllerRevision(),
		daemonSet(),
		deployment(),
		replicaSet(),
		statefulSet(),

		horizontalPodAutoscaler(),

		cronJob(),
		job(),

		lease(),

		endpointSlice(),

		podDisruptionBudget(),

		clusterRoleBinding(),
		clusterRole(),
		roleBinding(),
		role(),
	}
}
