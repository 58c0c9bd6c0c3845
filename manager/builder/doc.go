// Package builder makes a controller of what it is for, what it owns and what else it watches:
//
//	err := builder.ControllerManagedBy(mgr).
//		For(&appsv1.ReplicaSet{}).
//		Owns(&corev1.Pod{}).
//		Complete(reconciler)
//
// Nothing here is out of reach without it. The call above expands to
//
//	sets, err := informer.For[*appsv1.ReplicaSet](mgr.Informers())
//	pods, err := informer.For[*corev1.Pod](mgr.Informers())
//	c := reconcile.New("replicaset", reconciler, reconcile.Options[reconcile.Request]{Metrics: mgr.QueueMetrics()})
//	err = c.Watch(reconcile.Kind(sets, reconcile.EnqueueObject[*appsv1.ReplicaSet]()))
//	err = c.Watch(reconcile.Kind(pods, reconcile.EnqueueOwner[*corev1.Pod](kindOfSets, reconcile.OwnerOptions{})))
//	err = mgr.Add(c)
//
// and to what the manager needs to remove the controller, or to run it in a further tenure. The caches are those that
// informer.For gives anyone else in the process.
//
// # Misuse
//
// The methods note what is wrong and go on; [Builder.Build] and [Builder.Complete] return all of it, each with what to do
// about it. What only the server knows (that it has no such resource, that it forbids it) shows in the manager's readiness
// and, with [Builder.CacheSyncTimeout], ends the process.
//
// # Types
//
// Events arrive as informer.Object, whatever For, Owns and Watches were given; the dynamic type is that of the example.
// Handlers and predicates of one static type are put in by WatchesRawSource:
//
//	pods, err := informer.For[*corev1.Pod](mgr.Informers())
//	b.WatchesRawSource(reconcile.Kind(pods, reconcile.Filter(handler, predicates...)))
package builder
