// Package ranges does arithmetic on ranges of IP addresses. It does not depend on Kubernetes.
package ranges
