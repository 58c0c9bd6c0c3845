package builtin

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func job() *resource.Definition {
	d := namespaced[batchv1.Job, batchv1.JobList](batchv1.SchemeGroupVersion, "jobs")
	d.Categories = []string{"all"}
	withStatus(d)
	d.DefaultPropagation = metav1.DeletePropagationOrphan
	d.DeleteWarnings = warnOfOrphanedPods
	d.Default = mutate(func(j *batchv1.Job) {
		if len(j.Labels) == 0 {
			j.Labels = j.Spec.Template.Labels // one map: what is generated into the template shows here too
		}
		defaultJobSpec(&j.Spec)
	})
	d.PrepareCreate = prepare(func(j *batchv1.Job) {
		j.Status = batchv1.JobStatus{}
		if !*j.Spec.ManualSelector {
			generateJobSelector(j)
		}
		if len(j.Labels) == 0 {
			j.Labels = j.Spec.Template.Labels // the real server defaults again when it reads what it stored
		}
	})
	withGeneration(d, "Spec")
	d.Validate = rules(validateJob)
	d.ValidateUpdate = updateRules(validateJobUpdate)
	d.Fields = selectable(func(j *batchv1.Job) fields.Set {
		return fields.Set{"status.successful": strconv.Itoa(int(j.Status.Succeeded))}
	})
	printed(d, jobRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/registry/batch/job/storage/storage.go Delete.
func warnOfOrphanedPods(o *metav1.DeleteOptions) []string {
	//lint:ignore SA1019 clients may still send it
	if o.PropagationPolicy != nil || o.OrphanDependents != nil {
		return nil
	}
	return []string{
		"child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them " +
			"or set propagationPolicy=Orphan to suppress this warning",
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/batch/v1/defaults.go SetDefaults_Job.
func defaultJobSpec(spec *batchv1.JobSpec) {
	if spec.Completions == nil && spec.Parallelism == nil {
		spec.Completions = ptr.To[int32](1)
	}
	setDefaultPtr(&spec.Parallelism, 1)
	backoff, replacement := int32(6), batchv1.TerminatingOrFailed
	if spec.BackoffLimitPerIndex != nil {
		backoff = math.MaxInt32
	}
	if spec.PodFailurePolicy != nil {
		replacement = batchv1.Failed
	}
	setDefaultPtr(&spec.BackoffLimit, backoff)
	setDefaultPtr(&spec.PodReplacementPolicy, replacement)
	setDefaultPtr(&spec.CompletionMode, batchv1.NonIndexedCompletion)
	setDefaultPtr(&spec.Suspend, false)
	setDefaultPtr(&spec.ManualSelector, false)
	defaultPodTemplate(&spec.Template)
}

// generateJobSelector makes a Job select exactly its own pods, by its UID.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/batch/job/strategy.go generateSelector.
func generateJobSelector(j *batchv1.Job) {
	uid := string(j.UID)
	if j.Spec.Template.Labels == nil {
		j.Spec.Template.Labels = map[string]string{}
	}
	for k, v := range map[string]string{
		"job-name": j.Name, batchv1.JobNameLabel: j.Name,
		"controller-uid": uid, batchv1.ControllerUidLabel: uid,
	} {
		if _, ok := j.Spec.Template.Labels[k]; !ok {
			j.Spec.Template.Labels[k] = v
		}
	}
	if j.Spec.Selector == nil {
		j.Spec.Selector = &metav1.LabelSelector{}
	}
	j.Spec.Selector.MatchLabels = merged(map[string]string{batchv1.ControllerUidLabel: uid},
		j.Spec.Selector.MatchLabels)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/batch/validation/validation.go ValidateJobSpec.
func validateJob(f verify.Field, j *batchv1.Job) {
	f, spec := f.Child("spec"), &j.Spec
	validateJobSpec(f, spec)
	validateSelector(f, workload{selector: spec.Selector, template: &spec.Template, name: "job"})
}

func validateJobSpec(f verify.Field, spec *batchv1.JobSpec) {
	nonnegatives(f, spec, "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
	f.Nonnegative("ttlSecondsAfterFinished", replicasOf(spec.TTLSecondsAfterFinished))
	validateTemplate(f.Child("template"), &spec.Template)
	f.Require("template.spec.restartPolicy", spec.Template.Spec.RestartPolicy != corev1.RestartPolicyAlways,
		`valid values: "OnFailure", "Never"`)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/batch/validation/validation.go ValidateJobSpecUpdate. A suspended job that
// never started may still change the scheduling of its template.
func validateJobUpdate(f verify.Field, j, old *batchv1.Job) {
	f, now, was := f.Child("spec"), &j.Spec, &old.Spec
	f.Immutable("selector", now.Selector, was.Selector)
	f.Immutable("completionMode", now.CompletionMode, was.CompletionMode)
	if ptr.Deref(now.CompletionMode, "") != batchv1.IndexedCompletion {
		f.Immutable("completions", now.Completions, was.Completions)
	}
	template := was.Template.DeepCopy()
	if ptr.Deref(was.Suspend, false) && old.Status.StartTime == nil {
		now := &now.Template
		template.Labels, template.Annotations = now.Labels, now.Annotations
		template.Spec.NodeSelector, template.Spec.Affinity = now.Spec.NodeSelector, now.Spec.Affinity
		template.Spec.Tolerations, template.Spec.SchedulingGates = now.Spec.Tolerations, now.Spec.SchedulingGates
	}
	immutableShown(f, "template", now.Template, *template)
}

func jobRow(j *batchv1.Job, now time.Time) []cell {
	return append([]cell{
		nameColumn(j.Name),
		column("Status", "string", "Status of the job.", jobStatus(j)),
		column("Completions", "string", batchv1.JobStatus{}.SwaggerDoc()["succeeded"], jobCompletions(j)),
		column("Duration", "string", "Time required to complete the job.", jobDuration(j, now)),
		ageColumn(j.CreationTimestamp, now),
	}, templateColumns(&j.Spec.Template, batchv1.JobSpec{}.SwaggerDoc()["selector"],
		metav1.FormatLabelSelector(j.Spec.Selector))...)
}

func jobStatus(j *batchv1.Job) string {
	has := map[batchv1.JobConditionType]bool{}
	for _, c := range j.Status.Conditions {
		has[c.Type] = c.Status == corev1.ConditionTrue
	}
	switch {
	case has[batchv1.JobComplete]:
		return "Complete"
	case has[batchv1.JobFailed]:
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case has[batchv1.JobSuspended]:
		return "Suspended"
	case has[batchv1.JobFailureTarget]:
		return "FailureTarget"
	case has[batchv1.JobSuccessCriteriaMet]:
		return "SuccessCriteriaMet"
	default:
		return "Running"
	}
}

func jobCompletions(j *batchv1.Job) string {
	parallelism := replicasOf(j.Spec.Parallelism)
	switch {
	case j.Spec.Completions != nil:
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case parallelism > 1:
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, parallelism)
	default:
		return fmt.Sprintf("%d/1", j.Status.Succeeded)
	}
}

func jobDuration(j *batchv1.Job, now time.Time) string {
	if j.Status.StartTime == nil {
		return ""
	}
	if end := j.Status.CompletionTime; end != nil {
		now = end.Time
	}
	return duration.HumanDuration(now.Sub(j.Status.StartTime.Time))
}

func cronJob() *resource.Definition {
	d := namespaced[batchv1.CronJob, batchv1.CronJobList](batchv1.SchemeGroupVersion, "cronjobs", "cj")
	d.Categories = []string{"all"}
	withStatus(d)
	withGeneration(d, "Spec")
	d.Default = mutate(defaultCronJob)
	d.Validate = rules(validateCronJob)
	printed(d, cronJobRow)
	return d
}

// defaultCronJob defaults the pods of the job template, but not the job itself: its Jobs get those defaults when they
// are created.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/batch/v1/defaults.go SetDefaults_CronJob.
func defaultCronJob(c *batchv1.CronJob) {
	setDefault(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setDefaultPtr(&c.Spec.Suspend, false)
	setDefaultPtr(&c.Spec.SuccessfulJobsHistoryLimit, 3)
	setDefaultPtr(&c.Spec.FailedJobsHistoryLimit, 1)
	defaultPodTemplate(&c.Spec.JobTemplate.Spec.Template)
}

// validateCronJob counts the fields of the schedule, but does not parse them.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/batch/validation/validation.go ValidateCronJobSpec.
func validateCronJob(f verify.Field, c *batchv1.CronJob) {
	f, spec := f.Child("spec"), &c.Spec
	parts := strings.Fields(spec.Schedule)
	f.Rejectf("schedule", spec.Schedule != "" && !strings.HasPrefix(spec.Schedule, "@") && len(parts) != 5,
		spec.Schedule, "expected exactly 5 fields, found %d: %v", len(parts), parts)
	nonnegatives(f, spec, "startingDeadlineSeconds")
	verify.OneOf(f, "concurrencyPolicy", spec.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent,
		batchv1.ReplaceConcurrent)
	validateJobSpec(f.Child("jobTemplate.spec"), &spec.JobTemplate.Spec)
	nonnegatives(f, spec, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
	f.Require("schedule", spec.Schedule != "", "")
}

func cronJobRow(c *batchv1.CronJob, now time.Time) []cell {
	last, suspend := "<none>", "<unset>"
	if c.Status.LastScheduleTime != nil {
		last = resource.Age(*c.Status.LastScheduleTime, now)
	}
	if c.Spec.Suspend != nil {
		// A capitalized word, although the column's type is boolean.
		suspend = map[bool]string{true: "True", false: "False"}[*c.Spec.Suspend]
	}
	spec, status := batchv1.CronJobSpec{}.SwaggerDoc(), batchv1.CronJobStatus{}.SwaggerDoc()
	return append([]cell{
		nameColumn(c.Name),
		column("Schedule", "string", spec["schedule"], c.Spec.Schedule),
		column("Timezone", "string", spec["timeZone"], ptr.Deref(c.Spec.TimeZone, "<none>")),
		column("Suspend", "boolean", spec["suspend"], suspend),
		column("Active", "integer", status["active"], int64(len(c.Status.Active))),
		column("Last Schedule", "string", status["lastScheduleTime"], last),
		ageColumn(c.CreationTimestamp, now),
	}, templateColumns(&c.Spec.JobTemplate.Spec.Template, batchv1.JobSpec{}.SwaggerDoc()["selector"],
		metav1.FormatLabelSelector(c.Spec.JobTemplate.Spec.Selector))...)
}
