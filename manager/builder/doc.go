// Package builder builds a controller from the kind it reconciles, the kinds it owns and the other kinds it watches:
//
//	err := builder.ControllerManagedBy(mgr).
//		For(&appsv1.ReplicaSet{}).
//		Owns(&corev1.Pod{}).
//		Complete(reconciler)
//
// It is only a convenience. The call above expands to
//
//	sets, err := informer.For[*appsv1.ReplicaSet](mgr.Informers())
//	pods, err := informer.For[*corev1.Pod](mgr.Informers())
//	c := reconcile.New("replicaset", reconciler, reconcile.Options[reconcile.Request]{Metrics: mgr.QueueMetrics()})
//	err = c.Watch(source.Kind(sets, handler.EnqueueObject[*appsv1.ReplicaSet]()))
//	err = c.Watch(source.Kind(pods, handler.EnqueueOwner[*corev1.Pod](kindOfSets, handler.OwnerOptions{})))
//	err = mgr.Add(c)
//
// and to what the manager needs to remove the controller, or to run it in another tenure. The caches are the same that
// informer.For returns elsewhere in the process.
//
// # Misuse
//
// The methods record mistakes and do not stop. [Builder.Build] and [Builder.Complete] return all mistakes, each with
// its remedy. Other problems only the server knows: the resource does not exist, or access is forbidden. They show in
// the manager's readiness and, with [Builder.CacheSyncTimeout], end the process.
//
// # Types
//
// Handlers and predicates receive objects as informer.Object, whatever type For, Owns and Watches were given; the
// dynamic type is that of the example. To use handlers and predicates of a specific static type, call WatchesRawSource:
//
//	pods, err := informer.For[*corev1.Pod](mgr.Informers())
//	b.WatchesRawSource(source.Kind(pods, handler.Filter(handler, predicates...)))
package builder
