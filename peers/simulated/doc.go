// Package simulated runs other people's controllers under simtest, unmodified: those of LeaderWorkerSet and JobSet,
// and the ReplicaSet and Deployment controllers of kube-controller-manager. Each test pins what simtest finds.
package simulated
