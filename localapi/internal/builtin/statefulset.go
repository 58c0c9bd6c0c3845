package builtin

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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

func daemonSet() *resource.Definition {
	d := namespaced[appsv1.DaemonSet, appsv1.DaemonSetList](appsv1.SchemeGroupVersion, "daemonsets", "ds")
	d.Categories = []string{"all"}
	withStatus(d)
	d.Default = mutate(defaultDaemonSet)
	d.PrepareCreate = prepare(func(d *appsv1.DaemonSet) {
		d.Status = appsv1.DaemonSetStatus{}
		setTemplateGeneration(d, 1)
	})
	d.PrepareUpdate = carry(prepareDaemonSetUpdate)
	withGeneration(d, "Spec")
	d.Validate = check(validateDaemonSet)
	d.ValidateUpdate = compare(func(d, old *appsv1.DaemonSet) field.ErrorList {
		return immutable(d.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))
	})
	printed(d, daemonSetRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/v1/defaults.go SetDefaults_DaemonSet;
// pkg/apis/apps/v1/conversion.go, for the template generation, which a client therefore owns.
func defaultDaemonSet(d *appsv1.DaemonSet) {
	if _, ok := d.Annotations[appsv1.DeprecatedTemplateGeneration]; !ok {
		setTemplateGeneration(d, 0)
	}
	u := &d.Spec.UpdateStrategy
	setDefault(&u.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if u.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		setDefaultPtr(&u.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		setDefaultPtr(&u.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		setDefaultPtr(&u.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	setDefaultPtr(&d.Spec.RevisionHistoryLimit, 10)
	defaultPodTemplate(&d.Spec.Template)
}

// prepareDaemonSetUpdate also counts changes of the template. The count is a field in the server and an annotation
// in apps/v1.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/apps/daemonset/strategy.go PrepareForUpdate;
// pkg/apis/apps/v1/conversion.go.
func prepareDaemonSetUpdate(d, old *appsv1.DaemonSet) {
	d.Status = old.Status
	n, _ := strconv.ParseInt(old.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if !equality.Semantic.DeepEqual(d.Spec.Template, old.Spec.Template) {
		n++
	}
	setTemplateGeneration(d, n)
}

func setTemplateGeneration(d *appsv1.DaemonSet, n int64) {
	d.Annotations = merged(d.Annotations,
		map[string]string{appsv1.DeprecatedTemplateGeneration: strconv.FormatInt(n, 10)})
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateDaemonSetSpec.
func validateDaemonSet(d *appsv1.DaemonSet) field.ErrorList {
	path, spec := field.NewPath("spec"), &d.Spec
	errs := validateWorkload(workload{spec.Selector, &spec.Template, "daemonset", "DaemonSet"}, path)
	errs = append(errs, nonnegative(int64(spec.MinReadySeconds), path.Child("minReadySeconds"))...)
	if u := spec.UpdateStrategy; u.Type != appsv1.RollingUpdateDaemonSetStrategyType &&
		u.Type != appsv1.OnDeleteDaemonSetStrategyType {
		errs = append(errs, field.NotSupported(path.Child("updateStrategy"), shown(u),
			[]appsv1.DaemonSetUpdateStrategyType{
				appsv1.RollingUpdateDaemonSetStrategyType,
				appsv1.OnDeleteDaemonSetStrategyType,
			}))
	}
	return append(errs, nonnegative(replicasOf(spec.RevisionHistoryLimit), path.Child("revisionHistoryLimit"))...)
}

func daemonSetRow(d *appsv1.DaemonSet, now time.Time) []cell {
	doc, s := appsv1.DaemonSetStatus{}.SwaggerDoc(), &d.Status
	return append([]cell{
		nameColumn(d.Name),
		column("Desired", "integer", doc["desiredNumberScheduled"], int64(s.DesiredNumberScheduled)),
		column("Current", "integer", doc["currentNumberScheduled"], int64(s.CurrentNumberScheduled)),
		column("Ready", "integer", doc["numberReady"], int64(s.NumberReady)),
		column("Up-to-date", "integer", doc["updatedNumberScheduled"], int64(s.UpdatedNumberScheduled)),
		column("Available", "integer", doc["numberAvailable"], int64(s.NumberAvailable)),
		column("Node Selector", "string", corev1.PodSpec{}.SwaggerDoc()["nodeSelector"],
			labels.FormatLabels(d.Spec.Template.Spec.NodeSelector)),
		ageColumn(d.CreationTimestamp, now),
	}, templateColumns(&d.Spec.Template, appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"],
		metav1.FormatLabelSelector(d.Spec.Selector))...)
}
