package builtin

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// replicationController is only stored; no controller here creates its pods.
func replicationController() *resource.Definition {
	d := namespaced[corev1.ReplicationController, corev1.ReplicationControllerList](corev1.SchemeGroupVersion,
		"replicationcontrollers", "rc")
	d.Categories = []string{"all"}
	d.DefaultPropagation = metav1.DeletePropagationOrphan
	withStatus(d)
	withGeneration(d, "Spec")
	d.Default = mutate(defaultReplicationController)
	d.Validate = check(validateReplicationController)
	d.ValidateStatusUpdate = compare(validateReplicationControllerStatus)
	d.Warnings = func(obj, old runtime.Object) []string {
		problems := validation.IsDNS1123Label(obj.(*corev1.ReplicationController).Name)
		if old != nil || len(problems) == 0 {
			return nil
		}
		return []string{fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, "+
			"which can result in surprising behavior; a DNS label is recommended: %v", problems)}
	}
	d.Fields = selectable(func(rc *corev1.ReplicationController) fields.Set {
		return fields.Set{"status.replicas": fmt.Sprint(rc.Status.Replicas)}
	})
	printed(d, replicationControllerRow)
	withScale(d, func(rc *corev1.ReplicationController) scalable {
		selector := &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}
		return scalable{&rc.ObjectMeta, &rc.Spec.Replicas, rc.Status.Replicas, selector}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/v1/defaults.go SetDefaults_ReplicationController.
func defaultReplicationController(rc *corev1.ReplicationController) {
	defaultReplicas(&rc.Spec.Replicas, nil)
	if rc.Spec.Template == nil {
		return
	}
	defaultPodTemplate(rc.Spec.Template)
	if labels := rc.Spec.Template.Labels; labels != nil {
		if len(rc.Spec.Selector) == 0 {
			rc.Spec.Selector = labels
		}
		if len(rc.Labels) == 0 {
			rc.Labels = labels
		}
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateReplicationControllerSpec.
func validateReplicationController(rc *corev1.ReplicationController) field.ErrorList {
	path, spec := field.NewPath("spec"), &rc.Spec
	errs := nonnegative(int64(spec.MinReadySeconds), path.Child("minReadySeconds"))
	if len(spec.Selector) == 0 {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	}
	errs = append(errs, nonnegative(replicasOf(spec.Replicas), path.Child("replicas"))...)
	template := path.Child("template")
	if spec.Template == nil {
		return append(errs, field.Required(template, ""))
	}
	if !labels.SelectorFromSet(spec.Selector).Matches(labels.Set(spec.Template.Labels)) {
		errs = append(errs, field.Invalid(template.Child("metadata", "labels"), spec.Template.Labels,
			"`selector` does not match template `labels`"))
	}
	errs = append(errs, validateTemplate(spec.Template, template)...)
	return append(errs, runsForever(spec.Template, "ReplicationController", template)...)
}

func validateReplicationControllerStatus(rc, _ *corev1.ReplicationController) field.ErrorList {
	return validateCounters(&rc.Status, "fullyLabeledReplicas", "replicas", "fullyLabeledReplicas", "readyReplicas",
		"availableReplicas", "observedGeneration")
}

func replicationControllerRow(rc *corev1.ReplicationController, now time.Time) []cell {
	template := rc.Spec.Template
	if template == nil {
		template = &corev1.PodTemplateSpec{}
	}
	spec, status := corev1.ReplicationControllerSpec{}.SwaggerDoc(), corev1.ReplicationControllerStatus{}.SwaggerDoc()
	return append([]cell{
		nameColumn(rc.Name),
		column("Desired", "integer", spec["replicas"], replicasOf(rc.Spec.Replicas)),
		column("Current", "integer", status["replicas"], int64(rc.Status.Replicas)),
		column("Ready", "integer", status["readyReplicas"], int64(rc.Status.ReadyReplicas)),
		ageColumn(rc.CreationTimestamp, now),
	}, templateColumns(template, spec["selector"], labels.FormatLabels(rc.Spec.Selector))...)
}
