package builtin

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func statefulSet() *resource.Definition {
	d := namespaced[appsv1.StatefulSet, appsv1.StatefulSetList](appsv1.SchemeGroupVersion, "statefulsets", "sts")
	d.Categories = []string{"all"}
	withStatus(d)
	withGeneration(d, "Spec")
	d.ValidateName = apivalidation.NameIsDNSLabel
	d.Default = mutate(defaultStatefulSet)
	d.Validate = rules(validateStatefulSet)
	// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/validation/validation.go ValidateStatefulSetUpdate.
	d.ValidateUpdate = fixed(verify.Field.Immutable, "spec.selector", "spec.volumeClaimTemplates", "spec.serviceName",
		"spec.podManagementPolicy")
	listed(d, func(s *appsv1.StatefulSet) []cell {
		ready := fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, replicasOf(s.Spec.Replicas))
		return append([]cell{
			column("Ready", "string", "Number of the pod with ready state", ready),
		}, containerColumns(&s.Spec.Template)...)
	})
	withScale(d, func(s *appsv1.StatefulSet) scalable {
		return scalable{&s.ObjectMeta, &s.Spec.Replicas, s.Status.Replicas, s.Spec.Selector}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/v1/defaults.go SetDefaults_StatefulSet.
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

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/validation/validation.go ValidateStatefulSetSpec.
func validateStatefulSet(f verify.Field, s *appsv1.StatefulSet) {
	f, spec := f.Child("spec"), &s.Spec
	p, u := spec.PodManagementPolicy, spec.UpdateStrategy
	f.Reject("podManagementPolicy", p != appsv1.OrderedReadyPodManagement && p != appsv1.ParallelPodManagement, p,
		"must be 'OrderedReady' or 'Parallel'")
	switch u.Type {
	case appsv1.RollingUpdateStatefulSetStrategyType:
	case appsv1.OnDeleteStatefulSetStrategyType:
		f.Reject("updateStrategy.rollingUpdate", u.RollingUpdate != nil, shown(u.RollingUpdate),
			"only allowed for updateStrategy 'RollingUpdate'")
	default:
		f.Reject("updateStrategy", true, shown(u), "must be 'RollingUpdate' or 'OnDelete'")
	}
	nonnegatives(f, spec, "replicas", "minReadySeconds")
	f.MatchIfSet("serviceName", spec.ServiceName, validation.IsDNS1123Label)
	validateWorkload(f, workload{spec.Selector, withClaims(spec), "statefulset", "StatefulSet"})
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
	d.Validate = rules(validateDaemonSet)
	d.ValidateUpdate = fixed(verify.Field.Immutable, "spec.selector")
	listed(d, daemonSetRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/v1/defaults.go SetDefaults_DaemonSet;
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
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/apps/daemonset/strategy.go PrepareForUpdate;
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

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/validation/validation.go ValidateDaemonSetSpec.
func validateDaemonSet(f verify.Field, d *appsv1.DaemonSet) {
	f, spec := f.Child("spec"), &d.Spec
	validateWorkload(f, workload{spec.Selector, &spec.Template, "daemonset", "DaemonSet"})
	nonnegatives(f, spec, "minReadySeconds")
	all := []appsv1.DaemonSetUpdateStrategyType{
		appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType,
	}
	if u := spec.UpdateStrategy; !slices.Contains(all, u.Type) {
		f.Add(field.NotSupported(f.Path("updateStrategy"), shown(u), all))
	}
	nonnegatives(f, spec, "revisionHistoryLimit")
}

func daemonSetRow(d *appsv1.DaemonSet) []cell {
	doc, s := appsv1.DaemonSetStatus{}.SwaggerDoc(), &d.Status
	return append([]cell{
		column("Desired", "integer", doc["desiredNumberScheduled"], int64(s.DesiredNumberScheduled)),
		column("Current", "integer", doc["currentNumberScheduled"], int64(s.CurrentNumberScheduled)),
		column("Ready", "integer", doc["numberReady"], int64(s.NumberReady)),
		column("Up-to-date", "integer", doc["updatedNumberScheduled"], int64(s.UpdatedNumberScheduled)),
		column("Available", "integer", doc["numberAvailable"], int64(s.NumberAvailable)),
		column("Node Selector", "string", corev1.PodSpec{}.SwaggerDoc()["nodeSelector"],
			labels.FormatLabels(d.Spec.Template.Spec.NodeSelector)),
	}, templateColumns(&d.Spec.Template, appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"],
		metav1.FormatLabelSelector(d.Spec.Selector))...)
}
