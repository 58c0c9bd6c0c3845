package main

import (
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client/manifest"
)

// withWebhooks runs test with the webhooks configured as in webhooks.yaml.
func withWebhooks(t *testing.T, test func(w *world)) {
	inWorld(t, func(w *world) {
		file, err := os.Open("webhooks.yaml")
		w.must(err)
		defer file.Close()
		objects, err := manifest.Read(file.Name(), file)
		w.must(err)
		for _, o := range objects {
			w.must(w.them.Create(w.ctx, o.Unstructured))
		}
		test(w)
	})
}

// Fields that are not set get the tutorial's defaults. Fields that are set are kept.
func TestDefaults(t *testing.T) {
	withWebhooks(t, func(w *world) {
		w.must(w.them.Create(w.ctx, cronJob(func(s *CronJobSpec) { s.ConcurrencyPolicy = ForbidConcurrent })))
		s := w.cron().Spec
		if s.ConcurrencyPolicy != ForbidConcurrent || *s.SuccessfulJobsHistoryLimit != 3 ||
			*s.FailedJobsHistoryLimit != 1 {
			t.Errorf("%+v", s)
		}
		c := w.cron()
		c.Spec.ConcurrencyPolicy, c.Spec.SuccessfulJobsHistoryLimit = "", nil
		w.must(w.them.Update(w.ctx, c))
		if s := w.cron().Spec; s.ConcurrencyPolicy != AllowConcurrent || *s.SuccessfulJobsHistoryLimit != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// A CronJob that could never run is rejected, and the error lists all mistakes.
func TestValidation(t *testing.T) {
	withWebhooks(t, func(w *world) {
		c := cronJob(func(s *CronJobSpec) { s.Schedule = "every now and then" })
		c.Name = strings.Repeat("x", maxName+1)
		err := w.them.Create(w.ctx, c)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "got 4 fields, want 5") ||
			!strings.Contains(err.Error(), "it may have 52 characters") {
			t.Errorf("created: %v", err)
		}
		c = cronJob()
		c.Name = strings.Repeat("x", maxName)
		w.must(w.them.Create(w.ctx, c))
		c.Spec.Schedule = "* * * *"
		if err := w.them.Update(w.ctx, c); !apierrors.IsInvalid(err) {
			t.Errorf("updated: %v", err)
		}
		w.must(w.them.Delete(w.ctx, c))
	})
}
