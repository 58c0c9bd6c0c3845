package main

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
)

// The limits that the defaulter sets.
const (
	defaultSuccessfulJobs = 3
	defaultFailedJobs     = 1
)

// maxName leaves room for what jobFor appends to the name of a CronJob: a dash and the time of the run.
const maxName = validation.DNS1123LabelMaxLength - len("-4102444800")

// setupWebhooks adds the webhooks to a manager.
func setupWebhooks(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr).
		For(&CronJob{}).
		WithDefaulter(Defaulter{}).
		WithValidator(Validator{}).
		Complete()
}

// +kubebuilder:webhookconfiguration:mutating=true,name=cronjobs
// +kubebuilder:webhook:path=/mutate-batch-examples-flyball-dev-v1-cronjob,mutating=true,failurePolicy=fail,sideEffects=None,groups=batch.examples.flyball.dev,resources=cronjobs,verbs=create;update,versions=v1,name=mcronjob.batch.examples.flyball.dev,admissionReviewVersions=v1,serviceNamespace=default,serviceName=cronjob-webhooks

// Defaulter sets the defaults of CronJobs.
type Defaulter struct{}

var _ webhook.Defaulter[*CronJob] = Defaulter{}

// Default implements webhook.Defaulter.
func (Defaulter) Default(_ context.Context, c *CronJob) error {
	c.Spec.ConcurrencyPolicy = cmp.Or(c.Spec.ConcurrencyPolicy, AllowConcurrent)
	if c.Spec.SuccessfulJobsHistoryLimit == nil {
		c.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](defaultSuccessfulJobs)
	}
	if c.Spec.FailedJobsHistoryLimit == nil {
		c.Spec.FailedJobsHistoryLimit = ptr.To[int32](defaultFailedJobs)
	}
	return nil
}

// +kubebuilder:webhookconfiguration:mutating=false,name=cronjobs
// +kubebuilder:webhook:path=/validate-batch-examples-flyball-dev-v1-cronjob,mutating=false,failurePolicy=fail,sideEffects=None,groups=batch.examples.flyball.dev,resources=cronjobs,verbs=create;update,versions=v1,name=vcronjob.batch.examples.flyball.dev,admissionReviewVersions=v1,serviceNamespace=default,serviceName=cronjob-webhooks

// Validator rejects CronJobs that could never run.
type Validator struct{}

var _ webhook.Validator[*CronJob] = Validator{}

// ValidateCreate implements webhook.Validator.
func (Validator) ValidateCreate(_ context.Context, c *CronJob) (admission.Warnings, error) {
	return nil, c.validate()
}

// ValidateUpdate implements webhook.Validator.
func (Validator) ValidateUpdate(_ context.Context, _, c *CronJob) (admission.Warnings, error) {
	return nil, c.validate()
}

// ValidateDelete implements webhook.Validator. The configuration does not ask for it.
func (Validator) ValidateDelete(context.Context, *CronJob) (admission.Warnings, error) {
	return nil, nil
}

// validate returns what the definition cannot express: the syntax of the schedule and the length of the name.
func (c *CronJob) validate() error {
	var wrong field.ErrorList
	if len(c.Name) > maxName {
		wrong = append(wrong, field.Invalid(field.NewPath("metadata", "name"), c.Name,
			fmt.Sprintf("the names of its Jobs are longer: it may have %d characters", maxName)))
	}
	if _, err := ParseSchedule(c.Spec.Schedule); err != nil {
		wrong = append(wrong, field.Invalid(field.NewPath("spec", "schedule"), c.Spec.Schedule, err.Error()))
	}
	if len(wrong) == 0 {
		return nil
	}
	return apierrors.NewInvalid(groupVersion.WithKind("CronJob").GroupKind(), c.Name, wrong)
}
