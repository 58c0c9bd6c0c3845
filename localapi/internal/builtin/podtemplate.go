package builtin

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	d.Columns = []metav1.TableColumnDefinition{
		nameColumn(),
		column("Containers", "string", "Names of each container in the template."),
		column("Images", "string", "Images referenced by each container in the template."),
		column("Pod Labels", "string", "The labels for the pod template."),
	}
	d.Row = cells(func(t *corev1.PodTemplate, _ time.Time) []any {
		return append(append([]any{t.Name}, containerCells(&t.Template)...), labels.FormatLabels(t.Template.Labels))
	})
	return d
}
