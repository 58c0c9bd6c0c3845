// Package v1alpha1 has the webhooks of the kinds in version v1alpha1.
package v1alpha1
