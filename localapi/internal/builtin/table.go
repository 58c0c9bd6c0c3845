package builtin

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
)

// Columns with priority 0 are always printed, those with priority 1 by "kubectl get -o wide". The server sends both
// kinds; kubectl chooses.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/printers/internalversion/printers.go, for all columns and cells of the package.

func column(name, kind, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: kind, Description: description}
}

func wideColumn(name, kind, description string) metav1.TableColumnDefinition {
	c := column(name, kind, description)
	c.Priority = 1
	return c
}

func nameColumn() metav1.TableColumnDefinition {
	c := column("Name", "string", metav1.ObjectMeta{}.SwaggerDoc()["name"])
	c.Format = "name"
	return c
}

func ageColumn() metav1.TableColumnDefinition {
	return column("Age", "string", metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"])
}

// containerColumns and containerCells are the -o wide columns of every type with a pod template.
func containerColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		wideColumn("Containers", "string", "Names of each container in the template."),
		wideColumn("Images", "string", "Images referenced by each container in the template."),
	}
}

func containerCells(t *corev1.PodTemplateSpec) []any {
	names := make([]string, len(t.Spec.Containers))
	images := make([]string, len(t.Spec.Containers))
	for i := range t.Spec.Containers {
		names[i], images[i] = t.Spec.Containers[i].Name, t.Spec.Containers[i].Image
	}
	return []any{strings.Join(names, ","), strings.Join(images, ",")}
}

// age returns how long ago t was, as kubectl prints it: "<unknown>" for the zero time.
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// orNone returns s, or "<none>" if it is empty.
func orNone(s string) string {
	return cmp.Or(s, "<none>")
}

func replicasOf(n *int32) int64 {
	return int64(ptr.Deref(n, 0))
}
