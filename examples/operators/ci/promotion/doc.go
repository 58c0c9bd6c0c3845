// Package promotion finds images that are older than the branch they were built from, and starts jobs that build them
// again.
//
//	ImageStreams ─tags─▶ promotion-reconciler ─behind─┐
//	                                                  ├─▶ (org, repo, branch, commit) ─▶ promotion-job-creator ─▶ ProwJob
//	configuration ─added─▶ promotion-config ─missing──┘
//
// promotion-job-creator is a controller of its own for the sake of its keys: if twenty tags of one repository are
// behind at once, they share one key and get one job. A job's name is derived from its key and from the number of jobs
// that ended without updating the images. So no job is created twice, not even from a stale cache, after a crash, or
// beside another process.
//
// Source: pkg/controller/promotionreconciler of openshift/ci-tools.
package promotion
