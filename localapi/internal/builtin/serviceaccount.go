package builtin

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func serviceAccount() *resource.Definition {
	return &resource.Definition{
		GroupVersion: corev1.SchemeGroupVersion, Kind: "ServiceAccount",
		Plural: "serviceaccounts", Singular: "serviceaccount", ShortNames: []string{"sa"},
		Namespaced: true, DeleteReturnsObject: true,
		New:     func() runtime.Object { return &corev1.ServiceAccount{} },
		NewList: func() runtime.Object { return &corev1.ServiceAccountList{} },

		ValidateName: apivalidation.ValidateServiceAccountName,
		Columns:      []metav1.TableColumnDefinition{nameColumn(), ageColumn()},
		Row: cells(func(sa *corev1.ServiceAccount, now time.Time) []any {
			return []any{sa.Name, age(sa.CreationTimestamp, now)}
		}),
	}
}
