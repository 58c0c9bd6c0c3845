// Package v1alpha1 has the template of the webhooks of a kind that is not the project's own. It knows the metadata of
// such a kind alone.
package v1alpha1
