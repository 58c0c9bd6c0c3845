package builtin

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func cronJob() *resource.Definition {
	d := namespaced[batchv1.CronJob, batchv1.CronJobList](batchv1.SchemeGroupVersion, "cronjobs", "cj")
	d.Categories = []string{"all"}
	withStatus(d)
	withGeneration(d, "Spec")
	d.Default = mutate(defaultCronJob)
	d.Validate = check(validateCronJob)
	printed(d, cronJobRow)
	return d
}

// defaultCronJob defaults the pods of the job template, but not the job itself: its Jobs get those defaults when they
// are created.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/batch/v1/defaults.go SetDefaults_CronJob.
func defaultCronJob(c *batchv1.CronJob) {
	setDefault(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setDefaultPtr(&c.Spec.Suspend, false)
	setDefaultPtr(&c.Spec.SuccessfulJobsHistoryLimit, 3)
	setDefaultPtr(&c.Spec.FailedJobsHistoryLimit, 1)
	defaultPodTemplate(&c.Spec.JobTemplate.Spec.Template)
}

// validateCronJob counts the fields of the schedule, but does not parse them.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/batch/validation/validation.go ValidateCronJobSpec.
func validateCronJob(c *batchv1.CronJob) (errs field.ErrorList) {
	path, spec := field.NewPath("spec"), &c.Spec
	n := len(strings.Fields(spec.Schedule))
	switch {
	case spec.Schedule == "": // reported last, below
	case !strings.HasPrefix(spec.Schedule, "@") && n != 5:
		errs = append(errs, field.Invalid(path.Child("schedule"), spec.Schedule,
			fmt.Sprintf("expected exactly 5 fields, found %d: %v", n, strings.Fields(spec.Schedule))))
	}
	errs = append(errs, nonnegatives(spec, path, "startingDeadlineSeconds")...)
	errs = append(errs, oneOf(path.Child("concurrencyPolicy"), spec.ConcurrencyPolicy,
		batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, validateJobSpec(&spec.JobTemplate.Spec, path.Child("jobTemplate", "spec"))...)
	errs = append(errs, nonnegatives(spec, path, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")...)
	if spec.Schedule == "" {
		errs = append(errs, field.Required(path.Child("schedule"), ""))
	}
	return errs
}

func cronJobRow(c *batchv1.CronJob, now time.Time) []cell {
	last, suspend := "<none>", "<unset>"
	if c.Status.LastScheduleTime != nil {
		last = age(*c.Status.LastScheduleTime, now)
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
