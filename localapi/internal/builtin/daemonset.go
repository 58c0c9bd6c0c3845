package builtin

import (
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

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
