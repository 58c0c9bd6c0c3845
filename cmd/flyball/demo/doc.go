// Package demo plays the life of a Deployment on Flyball's own pipeline, in one process: an embedded Kubernetes API, a
// fake kubelet and the real controllers. It implements make demo. With a kubeconfig, the story is played on another
// cluster.
//
//	story.go     the steps of the story and their expected outcomes
//	cluster.go   the API, the kubelet, the manager and its controllers
//	state.go     what the cluster shows, and the same story on a cluster that is already there
//	director.go  runs a step, waits for its outcome and shows it: live bars on a terminal, plain lines elsewhere
package demo
