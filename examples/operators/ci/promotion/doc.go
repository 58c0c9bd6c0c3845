// Package promotion finds images that are behind the branch they were built from, and has them built again.
//
//	ImageStreams ─tags─▶ promotion-reconciler ─behind─┐
//	                                                  ├─▶ (org, repo, branch, commit) ─▶ promotion-job-creator ─▶ ProwJob
//	configuration ─added─▶ promotion-config ─missing──┘
//
// The keys of the last controller are the reason for it: twenty tags of one repository that are behind at once are one key, and
// one job. A job's name follows from its key and the number of those that ended without bringing the images forward, so that
// nobody can create one twice: not a process with a late cache, not one that died, not two at once.
//
// Source: pkg/controller/promotionreconciler of openshift/ci-tools.
package promotion
