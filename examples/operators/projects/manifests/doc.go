// Package manifests is what is applied to a cluster for the operator to work, and a way to apply it from a program.
package manifests
