// Package replicasets answers questions about the ReplicaSets of one Deployment: which of them is the new one, how
// large they are, which revision each has, and which annotations they carry. All functions are pure.
//
//	replicasets.go   sizes, orders, and the new ReplicaSet among the others
//	template.go      pod templates, their hash, and the name that is made of it
//	annotations.go   the annotations on Deployments and ReplicaSets
//	revision.go      revisions
package replicasets
