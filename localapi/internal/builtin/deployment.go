package builtin

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
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
	d.Validate = rules(validateDeployment)
	d.ValidateUpdate = fixed(verify.Field.Immutable, "spec.selector")
	d.ValidateStatusUpdate = updateRules(validateDeploymentStatus)
	listed(d, deploymentRow)
	withScale(d, func(d *appsv1.Deployment) scalable {
		return scalable{&d.ObjectMeta, &d.Spec.Replicas, d.Status.Replicas, d.Spec.Selector}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/v1/defaults.go SetDefaults_Deployment.
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
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/apps/deployment/strategy.go PrepareForUpdate.
func prepareDeploymentUpdate(d, old *appsv1.Deployment) {
	d.Status = old.Status
	if !equality.Semantic.DeepEqual(d.Spec, old.Spec) || !equality.Semantic.DeepEqual(d.Annotations, old.Annotations) {
		d.Generation = old.Generation + 1
	}
}

// prepareDeploymentStatus leaves annotations to a status write: the controller records the revision in the same write.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/apps/deployment/strategy.go deploymentStatusStrategy.
func prepareDeploymentStatus(d, old *appsv1.Deployment) {
	d.Spec = old.Spec
	d.Labels = old.Labels
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/validation/validation.go ValidateDeploymentSpec.
func validateDeployment(f verify.Field, d *appsv1.Deployment) {
	f, spec := f.Child("spec"), &d.Spec
	nonnegatives(f, spec, "replicas")
	validateWorkload(f, workload{spec.Selector, &spec.Template, "deployment", "ReplicaSet"})
	validateDeploymentStrategy(f, &spec.Strategy)
	nonnegatives(f, spec, "minReadySeconds", "revisionHistoryLimit")
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil {
		nonnegatives(f, spec, "progressDeadlineSeconds")
		f.Reject("progressDeadlineSeconds", *deadline <= spec.MinReadySeconds, *deadline,
			"must be greater than minReadySeconds")
	}
}

func validateDeploymentStrategy(f verify.Field, s *appsv1.DeploymentStrategy) {
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		f.Forbid("strategy.rollingUpdate", s.RollingUpdate != nil,
			"may not be specified when strategy `type` is 'Recreate'")
	case appsv1.RollingUpdateDeploymentStrategyType:
		validateRollingUpdate(f.Child("strategy.rollingUpdate"), s.RollingUpdate)
	default:
		f.Add(field.NotSupported(f.Path("strategy"), shown(s), []appsv1.DeploymentStrategyType{
			appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType,
		}))
	}
}

func validateRollingUpdate(f verify.Field, u *appsv1.RollingUpdateDeployment) {
	unavailable, surge := ptr.Deref(u.MaxUnavailable, intstr.IntOrString{}), ptr.Deref(u.MaxSurge, intstr.IntOrString{})
	validateIntOrPercent(f, "maxUnavailable", unavailable)
	validateIntOrPercent(f, "maxSurge", surge)
	n, isPercent := intOrPercent(unavailable)
	s, _ := intOrPercent(surge)
	f.Reject("maxUnavailable", n == 0 && s == 0, unavailable, "may not be 0 when `maxSurge` is 0")
	f.Reject("maxUnavailable", isPercent && n > 100, unavailable, "must not be greater than 100%")
}

func validateIntOrPercent(f verify.Field, name string, v intstr.IntOrString) {
	if v.Type == intstr.String {
		f.Problems(name, v, validation.IsValidPercent(v.StrVal))
	} else {
		f.Nonnegative(name, int64(v.IntValue()))
	}
}

// intOrPercent is the number in v, without its percent sign.
func intOrPercent(v intstr.IntOrString) (n int, isPercent bool) {
	if v.Type == intstr.String && len(validation.IsValidPercent(v.StrVal)) == 0 {
		n, _ = strconv.Atoi(v.StrVal[:len(v.StrVal)-1])
		return n, true
	}
	return v.IntValue(), false
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/validation/validation.go ValidateDeploymentStatusUpdate.
func validateDeploymentStatus(f verify.Field, d, old *appsv1.Deployment) {
	f = f.Child("status")
	validateCounters(f, &d.Status, "updatedReplicas", "observedGeneration", "replicas", "updatedReplicas",
		"readyReplicas", "availableReplicas", "unavailableReplicas", "terminatingReplicas", "collisionCount")
	now, was := replicasOf(d.Status.CollisionCount), replicasOf(old.Status.CollisionCount)
	f.Reject("collisionCount", now < was, now, "cannot be decremented")
}

func deploymentRow(d *appsv1.Deployment) []cell {
	doc, s := appsv1.DeploymentStatus{}.SwaggerDoc(), &d.Status
	return append([]cell{
		column("Ready", "string", "Number of the pod with ready state",
			fmt.Sprintf("%d/%d", s.ReadyReplicas, replicasOf(d.Spec.Replicas))),
		column("Up-to-date", "string", doc["updatedReplicas"], int64(s.UpdatedReplicas)),
		column("Available", "string", doc["availableReplicas"], int64(s.AvailableReplicas)),
	}, templateColumns(&d.Spec.Template, appsv1.DeploymentSpec{}.SwaggerDoc()["selector"],
		selectorString(d.Spec.Selector))...)
}
