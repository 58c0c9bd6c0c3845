package builtin

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
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
	d.Validate = rules(validateReplicaSet)
	d.ValidateUpdate = fixed(verify.Field.Immutable, "spec.selector")
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, rs, _ *appsv1.ReplicaSet) {
		validateCounters(f.Child("status"), &rs.Status, "fullyLabeledReplicas", "replicas", "fullyLabeledReplicas",
			"readyReplicas", "availableReplicas", "observedGeneration", "terminatingReplicas")
	})
	listed(d, func(rs *appsv1.ReplicaSet) []cell {
		doc, spec, s := appsv1.ReplicaSetStatus{}.SwaggerDoc(), appsv1.ReplicaSetSpec{}.SwaggerDoc(), &rs.Status
		return append([]cell{
			column("Desired", "integer", spec["replicas"], replicasOf(rs.Spec.Replicas)),
			column("Current", "integer", doc["replicas"], int64(s.Replicas)),
			column("Ready", "integer", doc["readyReplicas"], int64(s.ReadyReplicas)),
		}, templateColumns(&rs.Spec.Template, spec["selector"], metav1.FormatLabelSelector(rs.Spec.Selector))...)
	})
	withScale(d, func(rs *appsv1.ReplicaSet) scalable {
		return scalable{&rs.ObjectMeta, &rs.Spec.Replicas, rs.Status.Replicas, rs.Spec.Selector}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/validation/validation.go ValidateReplicaSetSpec.
func validateReplicaSet(f verify.Field, rs *appsv1.ReplicaSet) {
	f, spec := f.Child("spec"), &rs.Spec
	nonnegatives(f, spec, "replicas", "minReadySeconds")
	// The real server says "deployment" here, too.
	validateWorkload(f, workload{spec.Selector, &spec.Template, "deployment", "ReplicaSet"})
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
	d.Validate = rules(validateReplicationController)
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, rc, _ *corev1.ReplicationController) {
		validateCounters(f.Child("status"), &rc.Status, "fullyLabeledReplicas", "replicas", "fullyLabeledReplicas",
			"readyReplicas", "availableReplicas", "observedGeneration")
	})
	d.Warnings = func(obj, old runtime.Object) []string {
		problems := validation.IsDNS1123Label(obj.(*corev1.ReplicationController).Name)
		if old != nil || len(problems) == 0 {
			return nil
		}
		return []string{fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, "+
			"which can result in surprising behavior; a DNS label is recommended: %v", problems)}
	}
	d.Fields = selectableFields("status.replicas")
	listed(d, replicationControllerRow)
	withScale(d, func(rc *corev1.ReplicationController) scalable {
		selector := &metav1.LabelSelector{MatchLabels: rc.Spec.Selector}
		return scalable{&rc.ObjectMeta, &rc.Spec.Replicas, rc.Status.Replicas, selector}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go SetDefaults_ReplicationController.
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

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateReplicationControllerSpec.
func validateReplicationController(f verify.Field, rc *corev1.ReplicationController) {
	f, spec := f.Child("spec"), &rc.Spec
	nonnegatives(f, spec, "minReadySeconds")
	f.Require("selector", len(spec.Selector) > 0, "")
	nonnegatives(f, spec, "replicas")
	if spec.Template == nil {
		f.Require("template", false, "")
		return
	}
	own := spec.Template.Labels
	f.Reject("template.metadata.labels", !labels.SelectorFromSet(spec.Selector).Matches(labels.Set(own)), own,
		"`selector` does not match template `labels`")
	validateTemplate(f.Child("template"), spec.Template)
	runsForever(f.Child("template.spec"), spec.Template, "ReplicationController")
}

func replicationControllerRow(rc *corev1.ReplicationController) []cell {
	template := rc.Spec.Template
	if template == nil {
		template = &corev1.PodTemplateSpec{}
	}
	spec, status := corev1.ReplicationControllerSpec{}.SwaggerDoc(), corev1.ReplicationControllerStatus{}.SwaggerDoc()
	return append([]cell{
		column("Desired", "integer", spec["replicas"], replicasOf(rc.Spec.Replicas)),
		column("Current", "integer", status["replicas"], int64(rc.Status.Replicas)),
		column("Ready", "integer", status["readyReplicas"], int64(rc.Status.ReadyReplicas)),
	}, templateColumns(template, spec["selector"], labels.FormatLabels(rc.Spec.Selector))...)
}

func podTemplate() *resource.Definition {
	d := namespaced[corev1.PodTemplate, corev1.PodTemplateList](corev1.SchemeGroupVersion, "podtemplates")
	withGeneration(d, "Template")
	d.DeleteReturnsObject = true
	d.Default = mutate(func(t *corev1.PodTemplate) { defaultPodTemplate(&t.Template) })
	d.Validate = rules(func(f verify.Field, t *corev1.PodTemplate) {
		validateTemplate(f.Child("template"), &t.Template)
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
	d.Validate = rules(func(f verify.Field, r *appsv1.ControllerRevision) {
		f.Nonnegative("revision", r.Revision)
		f.Require("data", r.Data.Object != nil || len(r.Data.Raw) > 0, "data is mandatory")
	})
	d.ValidateUpdate = fixed(verify.Field.Immutable, "data")
	listed(d, func(r *appsv1.ControllerRevision) []cell {
		return []cell{
			column("Controller", "string", "Controller of the object", controllerName(r)),
			column("Revision", "string", appsv1.ControllerRevision{}.SwaggerDoc()["revision"], r.Revision),
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
