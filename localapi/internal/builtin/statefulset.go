package builtin

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func statefulSet() *resource.Definition {
	d := namespaced[appsv1.StatefulSet, appsv1.StatefulSetList](appsv1.SchemeGroupVersion, "statefulsets", "sts")
	d.Categories = []string{"all"}
	withStatus(d)
	withGeneration(d, "Spec")
	d.ValidateName = apivalidation.NameIsDNSLabel
	d.Default = mutate(defaultStatefulSet)
	d.Validate = check(validateStatefulSet)
	d.ValidateUpdate = compare(validateStatefulSetUpdate)
	printed(d, func(s *appsv1.StatefulSet, now time.Time) []cell {
		ready := fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, replicasOf(s.Spec.Replicas))
		return append([]cell{
			nameColumn(s.Name),
			column("Ready", "string", "Number of the pod with ready state", ready),
			ageColumn(s.CreationTimestamp, now),
		}, containerColumns(&s.Spec.Template)...)
	})
	withScale(d, func(s *appsv1.StatefulSet) scalable {
		return scalable{&s.ObjectMeta, &s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/v1/defaults.go SetDefaults_StatefulSet.
func defaultStatefulSet(s *appsv1.StatefulSet) {
	defaultReplicas(&s.Spec.Replicas, &s.Spec.RevisionHistoryLimit)
	setDefault(&s.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	u := &s.Spec.UpdateStrategy
	if u.Type == "" {
		u.Type = appsv1.RollingUpdateStatefulSetStrategyType
		setDefaultPtr(&u.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if u.Type == appsv1.RollingUpdateStatefulSetStrategyType && u.RollingUpdate != nil {
		setDefaultPtr(&u.RollingUpdate.Partition, 0)
		setDefaultPtr(&u.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
	}
	setDefaultPtr(&s.Spec.PersistentVolumeClaimRetentionPolicy,
		appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	retention := s.Spec.PersistentVolumeClaimRetentionPolicy
	setDefault(&retention.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	setDefault(&retention.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	for i := range s.Spec.VolumeClaimTemplates {
		claim := &s.Spec.VolumeClaimTemplates[i]
		claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
		defaultClaim(claim)
	}
	defaultPodTemplate(&s.Spec.Template)
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateStatefulSetSpec.
func validateStatefulSet(s *appsv1.StatefulSet) (errs field.ErrorList) {
	path, spec := field.NewPath("spec"), &s.Spec
	if p := spec.PodManagementPolicy; p != appsv1.OrderedReadyPodManagement && p != appsv1.ParallelPodManagement {
		errs = append(errs, field.Invalid(path.Child("podManagementPolicy"), p, "must be 'OrderedReady' or 'Parallel'"))
	}
	switch u := spec.UpdateStrategy; {
	case u.Type != appsv1.RollingUpdateStatefulSetStrategyType && u.Type != appsv1.OnDeleteStatefulSetStrategyType:
		errs = append(errs,
			field.Invalid(path.Child("updateStrategy"), shown(u), "must be 'RollingUpdate' or 'OnDelete'"))
	case u.Type == appsv1.OnDeleteStatefulSetStrategyType && u.RollingUpdate != nil:
		errs = append(errs, field.Invalid(path.Child("updateStrategy", "rollingUpdate"), shown(u.RollingUpdate),
			"only allowed for updateStrategy 'RollingUpdate'"))
	}
	errs = append(errs, nonnegatives(spec, path, "replicas", "minReadySeconds")...)
	if spec.ServiceName != "" {
		errs = append(errs, dnsLabel(spec.ServiceName, path.Child("serviceName"))...)
	}
	return append(errs,
		validateWorkload(workload{spec.Selector, withClaims(spec), "statefulset", "StatefulSet"}, path)...)
}

// withClaims returns the template with a volume for each claim template, as in the controller's pods.
func withClaims(spec *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	if len(spec.VolumeClaimTemplates) == 0 {
		return &spec.Template
	}
	t := spec.Template.DeepCopy()
	fromClaim := map[string]bool{}
	var volumes []corev1.Volume
	for i := range spec.VolumeClaimTemplates {
		name := spec.VolumeClaimTemplates[i].Name
		fromClaim[name] = true
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	for _, v := range t.Spec.Volumes {
		if !fromClaim[v.Name] {
			volumes = append(volumes, v)
		}
	}
	t.Spec.Volumes = volumes
	return t
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateStatefulSetUpdate.
func validateStatefulSetUpdate(s, old *appsv1.StatefulSet) field.ErrorList {
	path := field.NewPath("spec")
	errs := immutable(s.Spec.Selector, old.Spec.Selector, path.Child("selector"))
	errs = append(errs,
		immutable(s.Spec.VolumeClaimTemplates, old.Spec.VolumeClaimTemplates, path.Child("volumeClaimTemplates"))...)
	errs = append(errs, immutable(s.Spec.ServiceName, old.Spec.ServiceName, path.Child("serviceName"))...)
	return append(errs,
		immutable(s.Spec.PodManagementPolicy, old.Spec.PodManagementPolicy, path.Child("podManagementPolicy"))...)
}
