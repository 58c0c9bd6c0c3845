package builtin

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func serviceAccount() *resource.Definition {
	d := namespaced[corev1.ServiceAccount, corev1.ServiceAccountList](corev1.SchemeGroupVersion,
		"serviceaccounts", "sa")
	d.DeleteReturnsObject = true
	d.ValidateName = apivalidation.ValidateServiceAccountName
	d.Columns = []metav1.TableColumnDefinition{nameColumn(), ageColumn()}
	d.Row = cells(func(sa *corev1.ServiceAccount, now time.Time) []any {
		return []any{sa.Name, age(sa.CreationTimestamp, now)}
	})
	return d
}
