// Package webhook is the part of admission that calls webhooks.
//
//	[Mutating]    one after the other, by the name of their configuration; each gets what the one before made
//	[Validating]  all at once
//
// Both are plugins of package admission. They hold the webhooks of all configurations, which the server replaces
// whenever a configuration is written ([Mutating.Set], [Validating.Set]).
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/webhook.
package webhook
