package builtin

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

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
