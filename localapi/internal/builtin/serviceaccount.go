package builtin

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func serviceAccount() *resource.Definition {
	d := namespaced[corev1.ServiceAccount, corev1.ServiceAccountList](corev1.SchemeGroupVersion,
		"serviceaccounts", "sa")
	d.DeleteReturnsObject = true
	d.ValidateName = apivalidation.ValidateServiceAccountName
	printed(d, func(sa *corev1.ServiceAccount, now time.Time) []cell {
		return []cell{nameColumn(sa.Name), ageColumn(sa.CreationTimestamp, now)}
	})
	return d
}
