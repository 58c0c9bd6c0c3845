// Package controllerruntime puts parts of Flyball into operators that are built on controller-runtime:
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{
//		NewCache:  controllerruntime.NewCache,  // informers: errors that say what is missing; NewLeanCache: in a third of the memory
//		NewClient: controllerruntime.NewClient, // cached reads see the operator's own writes
//	})
//	err = ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).
//		WithOptions(controller.Options{NewQueue: controllerruntime.NewQueue[reconcile.Request]}).
//		Complete(reconciler)
//
// Each part works without the others, and is taken out again by deleting its line. docs/swap-in.md says what changes.
//
// [NewManager] replaces controller-runtime's manager as a whole: an unchanged SetupWithManager(ctrl.Manager) then
// gets a stop in two steps, fenced writes, and RunUntilIdle, which brings everything up to date and returns.
//
// What is promised is controller-runtime's contract: every update reaches every handler and predicate, objects keep
// their managedFields, and share no memory with one another. NewLeanCache gives up the last two.
package controllerruntime
