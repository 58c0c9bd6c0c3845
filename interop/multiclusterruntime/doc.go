// Package multiclusterruntime runs reconcilers and providers that were written for sigs.k8s.io/multicluster-runtime on
// Flyball's parts. It replaces two constructors; nothing else of a program changes:
//
//	mgr, err := multiclusterruntime.NewManager(config, provider, manager.Options{}) // was mcmanager.New
//	c, err := multiclusterruntime.NewCluster(config)                                // was cluster.New
//
// The manager is an mcmanager.Manager. Its local manager is that of package controllerruntime, so its stop, its lease
// and its caches are Flyball's. A cluster has Flyball's informers, and a client that reads its own writes. For clusters
// that a provider makes itself, pass [Parts] where the provider takes options of clusters.
//
// A queue of [NewQueue] takes the clusters in turn, so that a cluster with many objects does not hold up the others:
//
//	mcbuilder.ControllerManagedBy(mgr).WithOptions(mccontroller.Options{NewQueue: multiclusterruntime.NewQueue})
//
// [Provider] is for programs that move on to package multicluster, Flyball's own: there, a provider that was written
// for multicluster-runtime announces its clusters.
package multiclusterruntime
