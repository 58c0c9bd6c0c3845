// Package cluster measures controllers as they run in a cluster: on an etcd and kube-apiserver of their own, each in a
// process of its own. The command in cmd/cluster runs the systems in turns and prints a table for each load.
//
// Reading order: load.go, what is written to the API server; deployments.go and widgets.go, the two loads with their
// systems; watcher.go, the process that sees the writes and their effects; turn.go, how one system is measured and what
// the tables show.
package cluster
