// Package manifests is what is applied to a cluster for the operator to work: the definitions of its resources, its permissions, itself.
// And a way to apply it from a program.
package manifests
