// Package manifests has what is applied to a cluster: the definitions of the resources, the operator's permissions, the operator.
package manifests
