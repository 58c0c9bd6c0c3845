// Package promotion finds images that are older than the branch they were built from, and has them built again.
//
//	ImageStreams ─tags─▶ promotion-reconciler ─behind─┐
//	                                                  ├─▶ (org, repo, branch, commit) ─▶ promotion-job-creator ─▶ ProwJob
//	configuration ─added─▶ promotion-config ─missing──┘
//
// The last controller exists because of its keys: if twenty tags of one repository are behind at once, they share one
// key, and get one job. A job's name is derived from its key and the number of jobs that ended without updating the
// images. So no process can create a job twice, even with a late cache, after a crash, or beside another process.
//
// Source: pkg/controller/promotionreconciler of openshift/ci-tools.
package promotion
