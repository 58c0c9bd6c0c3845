// Package ephemeralcluster gives tests clusters that live as long as they need them. An EphemeralCluster becomes a ProwJob, which
// runs ci-operator in a build cluster; that makes the cluster, puts its credentials into a Secret of its namespace there, and
// waits for the Secret "test-done-signal" before it takes the cluster down again.
//
//	              job created          credentials copied        signal created             job succeeded
//	(nothing) ──▶ Provisioning ──────────▶ Ready ─────────▶ Deprovisioning ─────────▶ Deprovisioned
//	    │              │                     │                    │
//	    └ invalid      └─────────────────────┴────────────────────┴── job failed, aborted ──▶ Failed
//
// A cluster whose time to live is over is torn down as if it were not needed any more.
//
// There are two controllers, one of EphemeralClusters and one of ProwJobs whose EphemeralCluster is gone; both on the hub.
//
// # Crashes
//
// What is written comes in an order in which each step can be found again: the finalizer before the job, the job under a name
// that follows from the EphemeralCluster's UID, the status last. A process that dies between any two of them leaves what the
// next one goes on from; a second job cannot be created, whoever tries.
//
// Files: controller.go says what is done when; begin.go makes the job, follow.go looks what came of it, end.go is deletion;
// build.go is what happens in the build cluster, config.go what the job is told, validate.go who may have what, life.go how
// long; orphans.go is the
// second controller.
//
// Source: pkg/controller/ephemeralcluster of openshift/ci-tools.
package ephemeralcluster
