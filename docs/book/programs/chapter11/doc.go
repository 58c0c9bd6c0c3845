// Package chapter11 has the programs of the chapter about Deployment and ReplicaSet: a rollout as a script, and the
// real controller in clusters whose Pods the tests play.
package chapter11
