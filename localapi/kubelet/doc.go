// Package kubelet plays the nodes of a cluster that has none. It is a scheduler that binds pods, and a kubelet that
// reports them as running without running anything. It is for demos, one-shot tools and tests on an API server without
// nodes, and is itself a pair of controllers on this module's framework.
//
//	Nodes ─▶ node loop: keeps N Nodes, Ready, with addresses and capacity
//	Pods  ─▶ pod loop:  unbound  ─▶ bind to the node with the fewest pods
//	                    bound    ─▶ ContainerCreating ─(delay)─▶ Running and Ready, with an IP of its own
//	                    deleted  ─(delay)─▶ gone
//
// A pod goes through the conditions that a real kubelet reports, one by one (status.go). If an image cannot be pulled,
// its pod stays Pending, in ErrImagePull and then ImagePullBackOff. Each loop is split in two: pure plans (status.go,
// placement.go, node.go), and the code that carries them out (podloop.go, nodeloop.go).
//
// A pod that is ready here does not run. Options.Message puts that into the status of each pod.
//
// The kubelet writes only what changes: there are no heartbeats. If a node lifecycle controller runs, it will in the
// end consider the nodes dead.
package kubelet
