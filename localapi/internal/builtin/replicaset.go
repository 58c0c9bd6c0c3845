package builtin

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
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

func podTemplate() *resource.Definition {
	d := namespaced[corev1.PodTemplate, corev1.PodTemplateList](corev1.SchemeGroupVersion, "podtemplates")
	withGeneration(d, "Template")
	d.DeleteReturnsObject = true
	d.Default = mutate(func(t *corev1.PodTemplate) { defaultPodTemplate(&t.Template) })
	d.Validate = check(func(t *corev1.PodTemplate) field.ErrorList {
		return validateTemplate(&t.Template, field.NewPath("template"))
	})
	printed(d, func(t *corev1.PodTemplate, _ time.Time) []cell {
		names, images := containerLists(&t.Template)
		return []cell{
			nameColumn(t.Name),
			column("Containers", "string", "Names of each container in the template.", names),
			column("Images", "string", "Images referenced by each container in the template.", images),
			column("Pod Labels", "string", "The labels for the pod template.", labels.FormatLabels(t.Template.Labels)),
		}
	})
	return d
}

func controllerRevision() *resource.Definition {
	d := namespaced[appsv1.ControllerRevision, appsv1.ControllerRevisionList](appsv1.SchemeGroupVersion,
		"controllerrevisions")
	d.Validate = check(func(r *appsv1.ControllerRevision) field.ErrorList {
		errs := nonnegative(r.Revision, field.NewPath("revision"))
		if r.Data.Object == nil && len(r.Data.Raw) == 0 {
			errs = append(errs, field.Required(field.NewPath("data"), "data is mandatory"))
		}
		return errs
	})
	d.ValidateUpdate = compare(func(r, old *appsv1.ControllerRevision) field.ErrorList {
		return immutable(r.Data, old.Data, field.NewPath("data"))
	})
	printed(d, func(r *appsv1.ControllerRevision, now time.Time) []cell {
		return []cell{
			nameColumn(r.Name),
			column("Controller", "string", "Controller of the object", controllerName(r)),
			column("Revision", "string", appsv1.ControllerRevision{}.SwaggerDoc()["revision"], r.Revision),
			ageColumn(r.CreationTimestamp, now),
		}
	})
	return d
}

// controllerName prints the controller of an object like "statefulset.apps/web".
func controllerName(obj metav1.Object) string {
	ref := metav1.GetControllerOf(obj)
	if ref == nil {
		return "<none>"
	}
	gk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return strings.ToLower(gk.String()) + "/" + ref.Name
}
