package builtin

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func deployment() *resource.Definition {
	d := namespaced[appsv1.Deployment, appsv1.DeploymentList](appsv1.SchemeGroupVersion, "deployments", "deploy")
	d.Categories = []string{"all"}
	withStatus(d)
	withGeneration(d, "Spec")
	d.Default = mutate(defaultDeployment)
	d.PrepareUpdate = carry(prepareDeploymentUpdate) // It has a rule of its own for the generation.
	d.PrepareStatusUpdate = carry(prepareDeploymentStatus)
	d.StatusResets = []fieldpath.Path{fieldpath.MakePathOrDie("metadata", "labels")}
	d.Validate = check(validateDeployment)
	d.ValidateUpdate = compare(validateDeploymentUpdate)
	d.ValidateStatusUpdate = compare(validateDeploymentStatus)
	printed(d, deploymentRow)
	withScale(d, func(d *appsv1.Deployment) scalable {
		return scalable{&d.ObjectMeta, &d.Spec.Replicas, d.Status.Replicas, d.Spec.Selector}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/v1/defaults.go SetDefaults_Deployment.
func defaultDeployment(d *appsv1.Deployment) {
	defaultReplicas(&d.Spec.Replicas, &d.Spec.RevisionHistoryLimit)
	setDefaultPtr(&d.Spec.ProgressDeadlineSeconds, 600)
	s := &d.Spec.Strategy
	setDefault(&s.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Type == appsv1.RollingUpdateDeploymentStrategyType {
		setDefaultPtr(&s.RollingUpdate, appsv1.RollingUpdateDeployment{})
		setDefaultPtr(&s.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		setDefaultPtr(&s.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	defaultPodTemplate(&d.Spec.Template)
}

// prepareDeploymentUpdate bumps the generation for annotations too: the controller copies them to its ReplicaSets, so
// they are part of what is desired.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/apps/deployment/strategy.go PrepareForUpdate.
func prepareDeploymentUpdate(d, old *appsv1.Deployment) {
	d.Status = old.Status
	if !equality.Semantic.DeepEqual(d.Spec, old.Spec) || !equality.Semantic.DeepEqual(d.Annotations, old.Annotations) {
		d.Generation = old.Generation + 1
	}
}

// prepareDeploymentStatus leaves annotations to a status write: the controller records the revision in the same write.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/apps/deployment/strategy.go deploymentStatusStrategy.
func prepareDeploymentStatus(d, old *appsv1.Deployment) {
	d.Spec = old.Spec
	d.Labels = old.Labels
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateDeploymentSpec.
func validateDeployment(d *appsv1.Deployment) field.ErrorList {
	path, spec := field.NewPath("spec"), &d.Spec
	errs := nonnegative(replicasOf(spec.Replicas), path.Child("replicas"))
	errs = append(errs, validateWorkload(workload{spec.Selector, &spec.Template, "deployment", "ReplicaSet"}, path)...)
	errs = append(errs, validateDeploymentStrategy(&spec.Strategy, path.Child("strategy"))...)
	errs = append(errs, nonnegatives(spec, path, "minReadySeconds", "revisionHistoryLimit")...)
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil {
		p := path.Child("progressDeadlineSeconds")
		errs = append(errs, nonnegative(int64(*deadline), p)...)
		if *deadline <= spec.MinReadySeconds {
			errs = append(errs, field.Invalid(p, *deadline, "must be greater than minReadySeconds"))
		}
	}
	return errs
}

func validateDeploymentStrategy(s *appsv1.DeploymentStrategy, path *field.Path) field.ErrorList {
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			return field.ErrorList{
				field.Forbidden(path.Child("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'"),
			}
		}
		return nil
	case appsv1.RollingUpdateDeploymentStrategyType:
		return validateRollingUpdate(s.RollingUpdate, path.Child("rollingUpdate"))
	default:
		return field.ErrorList{field.NotSupported(path, shown(s), []appsv1.DeploymentStrategyType{
			appsv1.RecreateDeploymentStrategyType,
			appsv1.RollingUpdateDeploymentStrategyType,
		})}
	}
}

func validateRollingUpdate(u *appsv1.RollingUpdateDeployment, path *field.Path) field.ErrorList {
	unavailable, surge := ptr.Deref(u.MaxUnavailable, intstr.IntOrString{}), ptr.Deref(u.MaxSurge, intstr.IntOrString{})
	errs := validateIntOrPercent(unavailable, path.Child("maxUnavailable"))
	errs = append(errs, validateIntOrPercent(surge, path.Child("maxSurge"))...)
	n, isPercent := intOrPercent(unavailable)
	if s, _ := intOrPercent(surge); n == 0 && s == 0 {
		errs = append(errs,
			field.Invalid(path.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	if isPercent && n > 100 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), unavailable, "must not be greater than 100%"))
	}
	return errs
}

func validateIntOrPercent(v intstr.IntOrString, path *field.Path) field.ErrorList {
	if v.Type == intstr.String {
		return invalid(path, v, validation.IsValidPercent(v.StrVal))
	}
	return nonnegative(int64(v.IntValue()), path)
}

// intOrPercent is the number in v, without its percent sign.
func intOrPercent(v intstr.IntOrString) (n int, isPercent bool) {
	if v.Type == intstr.String && len(validation.IsValidPercent(v.StrVal)) == 0 {
		n, _ = strconv.Atoi(v.StrVal[:len(v.StrVal)-1])
		return n, true
	}
	return v.IntValue(), false
}

func validateDeploymentUpdate(d, old *appsv1.Deployment) field.ErrorList {
	return immutable(d.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/apps/validation/validation.go ValidateDeploymentStatusUpdate.
func validateDeploymentStatus(d, old *appsv1.Deployment) field.ErrorList {
	errs := validateCounters(&d.Status, "updatedReplicas", "observedGeneration", "replicas", "updatedReplicas",
		"readyReplicas", "availableReplicas", "unavailableReplicas", "terminatingReplicas", "collisionCount")
	now, was := replicasOf(d.Status.CollisionCount), replicasOf(old.Status.CollisionCount)
	if now < was {
		at := field.NewPath("status", "collisionCount")
		errs = append(errs, field.Invalid(at, int32(now), "cannot be decremented"))
	}
	return errs
}

func deploymentRow(d *appsv1.Deployment, now time.Time) []cell {
	doc, s := appsv1.DeploymentStatus{}.SwaggerDoc(), &d.Status
	return append([]cell{
		nameColumn(d.Name),
		column("Ready", "string", "Number of the pod with ready state",
			fmt.Sprintf("%d/%d", s.ReadyReplicas, replicasOf(d.Spec.Replicas))),
		column("Up-to-date", "string", doc["updatedReplicas"], int64(s.UpdatedReplicas)),
		column("Available", "string", doc["availableReplicas"], int64(s.AvailableReplicas)),
		ageColumn(d.CreationTimestamp, now),
	}, templateColumns(&d.Spec.Template, appsv1.DeploymentSpec{}.SwaggerDoc()["selector"],
		selectorString(d.Spec.Selector))...)
}
