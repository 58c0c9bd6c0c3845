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
// ending.go, placement.go, node.go), and the code that carries them out (podloop.go, nodeloop.go).
//
// Containers run until their pod is deleted, except those of the pods of Jobs, which succeed after one second. Two
// annotations of a pod, or of the template in a workload, change that for all its containers but the init containers:
//
//	kubelet.flyball.dev/ends-after: 30s    how long they run; "never" lets them run on
//	kubelet.flyball.dev/exit-code: "1"     from 0 to 255; 0 by default
//
// What follows is decided by the restart policy, as on a node: a container is started again at once, then after 10
// seconds, which are doubled up to five minutes; or the pod is Succeeded or Failed. Sidecars end after the others. A
// pod whose annotation has an invalid value does not start: its containers wait with the reason
// CreateContainerConfigError and a message. The deadline of a pod (activeDeadlineSeconds) fails it.
//
// A pod that is ready here does not run. Options.Message puts that into the status of each pod.
//
// The kubelet writes only what changes: there are no heartbeats. If a node lifecycle controller runs, it will in the
// end consider the nodes dead.
package kubelet
