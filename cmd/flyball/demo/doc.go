// Package demo plays the life of a Deployment on Flyball's own pipeline, in one process: an embedded
// Kubernetes API, a fake kubelet and the real controllers. It is what make demo shows.
//
//	story.go     what is done, and what must come of it
//	cluster.go   the API, the kubelet, the manager and its controllers
//	director.go  does a step and waits until what is, is what should be
//	screen.go    one line per step: live bars on a terminal, plain lines elsewhere
package demo
