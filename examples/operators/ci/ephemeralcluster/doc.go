// Package ephemeralcluster gives tests clusters that live as long as the tests need them. An EphemeralCluster becomes a
// ProwJob, which runs ci-operator in a build cluster. ci-operator makes the cluster, writes its credentials to a Secret
// in its namespace there, and waits for the Secret "test-done-signal" before it tears the cluster down.
//
//	              job created          credentials copied        signal created             job succeeded
//	(nothing) ──▶ Provisioning ──────────▶ Ready ─────────▶ Deprovisioning ─────────▶ Deprovisioned
//	    │              │                     │                    │
//	    └ invalid      └─────────────────────┴────────────────────┴── job failed, aborted ──▶ Failed
//
// When the time to live of a cluster is over, it is torn down as if its test were done.
//
// Two controllers run, both on the hub: one reconciles EphemeralClusters, the other removes ProwJobs whose
// EphemeralCluster is gone.
//
// # Crashes
//
// The order of the writes makes each step visible to the next process: the finalizer comes before the job, the job's
// name is derived from the EphemeralCluster's UID, and the status comes last. If a process dies between two writes, the
// next process continues from there, and none can create a second job.
//
// controller.go chooses the next step, checks permissions and computes the time to live. begin.go creates the job with
// its configuration, follow.go follows its progress and handles deletion. build.go works in the build cluster.
// orphans.go is the second controller.
//
// Source: pkg/controller/ephemeralcluster of openshift/ci-tools.
package ephemeralcluster
