// Package manifests holds what the operator needs in a cluster: the definitions of its resources, its permissions, and
// its Deployment. A program can apply them with this package.
package manifests
