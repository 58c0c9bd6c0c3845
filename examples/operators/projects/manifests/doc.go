// Package manifests has what must be applied to a cluster before the operator can work: the definitions of its
// resources, its permissions, and the operator itself. It can apply them from a program.
package manifests
