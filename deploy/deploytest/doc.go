// Package deploytest tests a program and the manifests that deploy it, as a cluster uses them. It renders the
// kustomization (render.go), compares the Deployment with what a careful administrator demands (restricted.go), and
// runs the program as the Pod would, with the command line, the environment and the permissions in the manifests, on a
// localapi server with RBAC (cluster.go): in this process, or in a container of its image (program.go).
package deploytest
