package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scheduledAt is the annotation of a Job with its time in the schedule.
const scheduledAt = "batch.examples.flyball.dev/scheduled-at"

// jobs are the Jobs of one CronJob, by state. The finished ones are sorted, oldest first.
type jobs struct {
	active, successful, failed []*batchv1.Job
	// newest is the scheduled time of the newest Job, or nil if there is none.
	newest *metav1.Time
}

// sortJobs sorts Jobs by state, in one pass.
func sortJobs(list []batchv1.Job) (all jobs) {
	for i := range list {
		job := &list[i]
		switch outcomeOf(job) {
		case batchv1.JobComplete:
			all.successful = append(all.successful, job)
		case batchv1.JobFailed:
			all.failed = append(all.failed, job)
		default:
			all.active = append(all.active, job)
		}
		at, err := time.Parse(time.RFC3339, job.Annotations[scheduledAt])
		if err == nil && (all.newest == nil || all.newest.Time.Before(at)) {
			all.newest = &metav1.Time{Time: at}
		}
	}
	slices.SortFunc(all.active, func(a, b *batchv1.Job) int { return cmp.Compare(a.Name, b.Name) })
	for _, finished := range [][]*batchv1.Job{all.successful, all.failed} {
		slices.SortFunc(finished, func(a, b *batchv1.Job) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
	}
	return all
}

// outcomeOf returns the condition that marks a Job as finished, or "" if it has not finished.
func outcomeOf(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// surplus returns the finished Jobs beyond limit, oldest first.
func surplus(finished []*batchv1.Job, limit *int32) []*batchv1.Job {
	if limit == nil {
		return nil
	}
	return finished[:max(len(finished)-int(*limit), 0)]
}

// jobFor returns the Job of one run. Its name is derived from the time of the run, so a second Job for the same run
// cannot be created.
func (c *CronJob) jobFor(run time.Time) *batchv1.Job {
	template := c.Spec.JobTemplate.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: fmt.Sprintf("%s-%d", c.Name, run.Unix()),
			Labels: template.Labels, Annotations: maps.Clone(template.Annotations),
		},
		Spec: template.Spec,
	}
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, scheduledAt, run.Format(time.RFC3339))
	return job
}
