// Package policy enforces mutating and validating admission policies: it decides which policies and bindings apply to a
// write, and finds their parameters. Package expressions has the evaluation of a policy.
//
// Source: k8s.io/apiserver v0.37.2 pkg/admission/plugin/policy.
package policy
