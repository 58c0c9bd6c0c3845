// Package kubelet plays the nodes of a cluster that has none: a scheduler that binds pods, and a kubelet that makes
// them run, without running anything. It is for demos, one-shot tools and tests on an API server without nodes, and
// is itself a pair of controllers on this module's framework.
//
//	Nodes ─▶ node loop: keeps N Nodes, Ready, with addresses and capacity
//	Pods  ─▶ pod loop:  unbound  ─▶ bind to the node with the fewest pods
//	                    bound    ─▶ ContainerCreating ─(delay)─▶ Running and Ready, with an IP of its own
//	                    deleted  ─(delay)─▶ gone
//
// What a pod goes through is what a real kubelet reports, condition by condition (status.go); an image that cannot be
// pulled keeps its pod Pending, in ErrImagePull and then ImagePullBackOff. The two halves of each loop are pure plans
// (status.go, placement.go, node.go) and what carries them out (podloop.go, nodeloop.go).
//
// A pod that is ready here is not run. Options.Message puts that into the status of each.
//
// It writes only what changes: there are no heartbeats. A node lifecycle controller, if one runs, would in the end
// take the nodes for dead.
package kubelet
