// Package ephemeralcluster gives tests clusters that live as long as the tests need them. An EphemeralCluster becomes a
// ProwJob, which runs ci-operator in a build cluster. ci-operator makes the cluster, writes its credentials to a Secret
// in its namespace there, and waits for the Secret "test-done-signal" before it tears the cluster down.
//
//	              job created          credentials copied        signal created             job succeeded
//	(nothing) ──▶ Provisioning ──────────▶ Ready ─────────▶ Deprovisioning ─────────▶ Deprovisioned
//	    │              │                     │                    │
//	    └ invalid      └─────────────────────┴────────────────────┴── job failed, aborted ──▶ Failed
//
// A cluster whose time to live is over is torn down as if it were no longer needed.
//
// There are two controllers, both on the hub: one of EphemeralClusters, and one of ProwJobs whose EphemeralCluster is
// gone.
//
// # Crashes
//
// The writes are ordered so that each step can be found again: the finalizer comes before the job, the job has a name
// derived from the EphemeralCluster's UID, and the status comes last. If a process dies between two writes, the next
// one continues from what is there. No process can create a second job.
//
// Files: controller.go decides what to do when. begin.go creates the job, follow.go follows its progress, end.go
// handles deletion. build.go works in the build cluster, config.go builds the job's configuration, validate.go checks
// permissions, life.go computes the time to live. orphans.go is the second controller.
//
// Source: pkg/controller/ephemeralcluster of openshift/ci-tools.
package ephemeralcluster
