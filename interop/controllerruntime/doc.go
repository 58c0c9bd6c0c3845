// Package controllerruntime lets operators that are built on controller-runtime use parts of Flyball:
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{
//		NewCache:  controllerruntime.NewCache,  // informers: errors that say what is missing; NewLeanCache: in a third of the memory
//		NewClient: controllerruntime.NewClient, // cached reads see the operator's own writes
//	})
//	err = ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).
//		WithOptions(controller.Options{NewQueue: controllerruntime.NewQueue[reconcile.Request]}).
//		Complete(reconciler)
//
// Each part works without the others, and is removed by deleting its line. docs/swap-in.md describes what changes.
//
// [NewManager] replaces controller-runtime's manager as a whole. An unchanged SetupWithManager(ctrl.Manager) then gets
// a stop in two steps, fenced writes, and RunUntilIdle, which brings everything up to date and returns.
//
// The parts keep controller-runtime's contract: every update reaches every handler and predicate, and objects keep
// their managedFields and share no memory with one another. NewLeanCache gives up the last two.
package controllerruntime
