package builtin

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func replicaSet() *resource.Definition {
	d := namespaced[appsv1.ReplicaSet, appsv1.ReplicaSetList](appsv1.SchemeGroupVersion, "replicasets", "rs")
	d.Categories = []string{"all"}
	withStatus(d)
	withGeneration(d, "Spec")
	d.Default = mutate(func(rs *appsv1.ReplicaSet) {
		defaultReplicas(&rs.Spec.Replicas, nil)
		defaultPodTemplate(&rs.Spec.Template)
	})
	d.Validate = check(validateReplicaSet)
	d.ValidateUpdate = compare(validateReplicaSetUpdate)
	d.ValidateStatusUpdate = compare(validateReplicaSetStatus)
	printed(d, func(rs *appsv1.ReplicaSet, now time.Time) []cell {
		doc, spec, s := appsv1.ReplicaSetStatus{}.SwaggerDoc(), appsv1.ReplicaSetSpec{}.SwaggerDoc(), &rs.Status
		return append([]cell{
			nameColumn(rs.Name),
			column("Desired", "integer", spec["replicas"], replicasOf(rs.Spec.Replicas)),
			column("Current", "integer", doc["replicas"], int64(s.Replicas)),
			column("Ready", "integer", doc["readyReplicas"], int64(s.ReadyReplicas)),
			ageColumn(rs.CreationTimestamp, now),
		}, templateColumns(&rs.Spec.Template, spec["selector"], metav1.FormatLabelSelector(rs.Spec.Selector))...)
	})
	withScale(d, func(rs *appsv1.ReplicaSet) scalable {
		return scalable{&rs.ObjectMeta, &rs.Spec.Replicas, rs.Status.Replicas, rs.Spec.Selector}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateReplicaSetSpec.
func validateReplicaSet(rs *appsv1.ReplicaSet) field.ErrorList {
	path, spec := field.NewPath("spec"), &rs.Spec
	errs := nonnegatives(spec, path, "replicas", "minReadySeconds")
	// The real server says "deployment" here, too.
	return append(errs, validateWorkload(workload{spec.Selector, &spec.Template, "deployment", "ReplicaSet"}, path)...)
}

func validateReplicaSetUpdate(rs, old *appsv1.ReplicaSet) field.ErrorList {
	return immutable(rs.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateReplicaSetStatus.
func validateReplicaSetStatus(rs, _ *appsv1.ReplicaSet) field.ErrorList {
	return validateCounters(&rs.Status, "fullyLabeledReplicas", "replicas", "fullyLabeledReplicas", "readyReplicas",
		"availableReplicas", "observedGeneration", "terminatingReplicas")
}
