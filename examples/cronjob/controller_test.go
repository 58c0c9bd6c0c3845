package main

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

//go:embed batch.examples.flyball.dev_cronjobs.yaml
var crd []byte

//go:embed sample.yaml
var sample []byte

// world is a server whose watches lag, somebody who works at it, and, while it runs, the manager.
type world struct {
	t    *testing.T
	ctx  context.Context
	api  *localapi.Server
	them *client.Cluster
	lag  atomic.Int64 // nanoseconds that each frame of a watch takes
	stop func()
	// pretend is how long Jobs take; 0: a test ends them.
	pretend time.Duration
}

// inWorld runs test at midnight of 2000-01-01, with the manager running.
func inWorld(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, ctx: klog.NewContext(t.Context(), klog.Logger{})}
		var err error
		w.api, err = localapi.New(localapi.Options{
			Audit: &audit.Log{},
			Gate: gate.Funcs{OnFrame: func(ctx context.Context, _ *gate.Request, _ gate.Frame) gate.Verdict {
				select {
				case <-time.After(time.Duration(w.lag.Load())):
				case <-ctx.Done():
				}
				return gate.Verdict{}
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.api.Close()
		scheme := runtime.NewScheme()
		w.must(clientscheme.AddToScheme(scheme))
		addToScheme(scheme)
		w.them, err = client.New(w.api.RESTConfig(), client.Options{Scheme: scheme})
		w.must(err)
		w.start() // before the kind is defined
		time.Sleep(time.Second)
		definition := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal(crd, &definition.Object))
		w.must(w.them.Create(w.ctx, definition))
		time.Sleep(59 * time.Second)
		test(w)
		w.stop()
	})
}

// start begins a life of the manager.
func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	config := w.api.RESTConfig()
	if w.pretend == 0 { // whoever pretends needs more than the controller
		config.Wrap(requests.Wrap)
	}
	mgr, err := newManager(ctx, config, options{pretend: w.pretend})
	w.must(err)
	w.api.HandleWebhook("default/cronjob-webhooks", mgr.GetWebhookServer())
	done := make(chan error)
	go func() { done <- mgr.Run(ctx) }()
	w.stop = func() {
		cancel()
		w.must(<-done)
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// cronJob is default/tick, which runs every five minutes.
func cronJob(change ...func(*CronJobSpec)) *CronJob {
	c := &CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tick"},
		Spec: CronJobSpec{Schedule: "*/5 * * * *", JobTemplate: batchv1.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "tick"}},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
			}}},
		}},
	}
	for _, f := range change {
		f(&c.Spec)
	}
	return c
}

func (w *world) cron() *CronJob {
	w.t.Helper()
	c := cronJob()
	w.must(w.them.Get(w.ctx, client.ObjectKeyFromObject(c), c))
	return c
}

// until sleeps until that time of the day.
func (w *world) until(clock string) {
	time.Sleep(time.Until(at("2000-01-01 " + clock)))
}

// jobs are the times of the Jobs there are, as 15:04; active ones with a star.
func (w *world) jobs() string {
	w.t.Helper()
	var list batchv1.JobList
	w.must(w.them.List(w.ctx, &list, client.MatchingLabels{"app": "tick"}))
	var times []string
	for _, job := range list.Items {
		run, err := time.Parse(time.RFC3339, job.Annotations[scheduledAt])
		w.must(err)
		text := run.Format("15:04")
		if outcomeOf(&job) == "" {
			text += "*"
		}
		times = append(times, text)
	}
	slices.Sort(times)
	return strings.Join(times, " ")
}

func (w *world) wantJobs(want string) {
	w.t.Helper()
	if got := w.jobs(); got != want {
		w.t.Errorf("at %s there are %q, want %q", time.Now().UTC().Format("15:04:05"), got, want)
	}
}

// finish makes every active Job end.
func (w *world) finish(how batchv1.JobConditionType) {
	w.t.Helper()
	var list batchv1.JobList
	w.must(w.them.List(w.ctx, &list))
	for i := range list.Items {
		if job := &list.Items[i]; outcomeOf(job) == "" {
			job.Status.Conditions = append(job.Status.Conditions,
				batchv1.JobCondition{Type: how, Status: corev1.ConditionTrue})
			w.must(w.them.Status().Update(w.ctx, job))
		}
	}
}

// creates is how many Jobs were created, whatever became of them, and tries how often that was asked for.
func (w *world) creates() (created, tries int) {
	for _, e := range w.api.Audit().Entries(
		func(e audit.Entry) bool { return e.Resource == "jobs" && e.Verb == "create" },
	) {
		if tries++; e.Code == 201 {
			created++
		}
	}
	return created, tries
}

// Each time of the schedule has one Job, and nobody tries a second, while the watch is two seconds behind; the status
// lists what is active; and a suspended one makes no requests at all.
func TestRunsOnSchedule(t *testing.T) {
	inWorld(t, func(w *world) {
		w.lag.Store(int64(2 * time.Second))
		w.must(w.them.Create(w.ctx, cronJob()))
		w.until("00:04")
		w.wantJobs("")
		w.until("00:06")
		w.wantJobs("00:05*")
		c := w.cron()
		if len(c.Status.Active) != 1 || c.Status.Active[0].Name != "tick-946685100" ||
			!c.Status.LastScheduleTime.Equal(&metav1.Time{Time: at("2000-01-01 00:05")}) {
			t.Errorf("status %+v", c.Status)
		}
		w.finish(batchv1.JobComplete)
		w.until("00:07")
		if c := w.cron(); len(c.Status.Active) != 0 || c.Status.LastScheduleTime == nil {
			t.Errorf("status %+v", c.Status)
		}
		for w.until("00:08"); time.Now().Before(at("2000-01-01 01:01")); time.Sleep(time.Minute) {
			w.finish(batchv1.JobComplete)
		}
		if created, tries := w.creates(); created != 12 || tries != 12 {
			t.Errorf("%d Jobs in an hour, %d tries", created, tries)
		}
		c = w.cron()
		c.Spec.Suspend = true
		w.must(w.them.Update(w.ctx, c))
		time.Sleep(time.Minute)
		w.api.Audit().Reset()
		time.Sleep(24 * time.Hour)
		if writes := w.api.Audit().Writes(); len(writes) != 0 {
			t.Errorf("a suspended day: %v", writes)
		}
	})
}

func TestConcurrencyPolicies(t *testing.T) {
	for policy, want := range map[ConcurrencyPolicy]struct{ at16, afterEnd string }{
		"":                {"00:05* 00:10* 00:15*", "00:05 00:10 00:15"},
		AllowConcurrent:   {"00:05* 00:10* 00:15*", "00:05 00:10 00:15"},
		ForbidConcurrent:  {"00:05*", "00:05 00:15*"}, // The newest that was missed begins late.
		ReplaceConcurrent: {"00:15*", "00:15"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.lag.Store(int64(time.Second))
				w.must(w.them.Create(w.ctx, cronJob(func(s *CronJobSpec) { s.ConcurrencyPolicy = policy })))
				w.until("00:16")
				w.wantJobs(want.at16)
				if got := len(w.cron().Status.Active); got != strings.Count(want.at16, "*") {
					t.Errorf("%d active in the status", got)
				}
				w.finish(batchv1.JobComplete)
				w.until("00:17")
				w.wantJobs(want.afterEnd)
			})
		})
	}
}

// The oldest finished Jobs go, the successful and the failed each by their limit; active ones stay. With nothing kept
// no run is repeated for that.
func TestHistoryLimits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.must(w.them.Create(w.ctx, cronJob(func(s *CronJobSpec) {
			s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = ptr.To[int32](2), ptr.To[int32](1)
		})))
		for i := range 8 {
			time.Sleep(5 * time.Minute)
			w.finish([]batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed}[i%2])
		}
		w.until("00:44")
		w.wantJobs("00:25 00:35 00:40")
		w.until("00:46")
		w.wantJobs("00:25 00:35 00:40 00:45*")
		c := w.cron()
		c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = ptr.To[int32](0), ptr.To[int32](0)
		w.must(w.them.Update(w.ctx, c))
		w.finish(batchv1.JobComplete)
		w.until("00:49")
		w.wantJobs("")
		if created, tries := w.creates(); created != 9 || tries != 9 {
			t.Errorf("%d Jobs, %d tries", created, tries)
		}
	})
}

// While it is suspended nothing begins; afterwards the newest run that was missed does, unless it is too late.
func TestSuspendAndDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		deadline *int64
		want     string
	}{
		"without a deadline": {nil, "00:15*"},
		"in time":            {ptr.To[int64](120), "00:15*"},
		"too late":           {ptr.To[int64](30), ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.must(
					w.them.Create(w.ctx,
						cronJob(func(s *CronJobSpec) { s.Suspend, s.StartingDeadlineSeconds = true, c.deadline })),
				)
				w.until("00:16")
				w.wantJobs("")
				cron := w.cron()
				cron.Spec.Suspend = false
				w.must(w.them.Update(w.ctx, cron))
				w.until("00:17")
				w.wantJobs(c.want)
				w.until("00:21")
				w.wantJobs(strings.TrimSpace(c.want + " 00:20*"))
			})
		})
	}
}

// The manager is away, and then another: it makes what is due, and nothing twice. One that was away too long asks for
// somebody to decide, until a deadline says what is too old.
func TestManagerAway(t *testing.T) {
	inWorld(t, func(w *world) {
		w.must(w.them.Create(w.ctx, cronJob()))
		w.until("00:06")
		w.stop()
		w.until("00:17")
		w.wantJobs("00:05*")
		w.start()
		w.until("00:18")
		w.wantJobs("00:05* 00:15*")
		w.stop()
		w.start()
		w.until("00:19")
		w.wantJobs("00:05* 00:15*")
		w.stop()
		w.until("09:31") // 110 runs later
		w.start()
		w.until("12:00")
		w.wantJobs("00:05* 00:15*")
		cron := w.cron()
		cron.Spec.StartingDeadlineSeconds = ptr.To[int64](600)
		w.must(w.them.Update(w.ctx, cron))
		w.until("12:01")
		w.wantJobs("00:05* 00:15* 12:00*")
		if created, tries := w.creates(); created != tries {
			t.Errorf("%d Jobs, %d tries", created, tries)
		}
	})
}

// A schedule that nobody can read is not tried again and again; when it is corrected the CronJob runs.
func TestUnreadableSchedule(t *testing.T) {
	inWorld(t, func(w *world) {
		w.must(w.them.Create(w.ctx, cronJob(func(s *CronJobSpec) { s.Schedule = "every now and then" })))
		w.until("01:00")
		if writes := w.api.Audit().Entries(
			func(e audit.Entry) bool { return e.Mutates() && e.Resource == "jobs" },
		); len(writes) != 0 {
			t.Errorf("%v", writes)
		}
		cron := w.cron()
		cron.Spec.Schedule, cron.Spec.StartingDeadlineSeconds = "*/5 * * * *", ptr.To[int64](60)
		w.must(w.them.Update(w.ctx, cron))
		w.until("01:06")
		w.wantJobs("01:00* 01:05*")
	})
}

// Only Jobs that this CronJob controls count: not those of a CronJob of Kubernetes of the same name, nor orphans.
func TestJobsOfOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		theirs := cronJob().jobFor(at("2000-01-01 00:00"))
		theirs.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "batch/v1", Kind: "CronJob", Name: "tick", UID: "1", Controller: ptr.To(true)},
		}
		w.must(w.them.Create(w.ctx, theirs))
		orphan := cronJob().jobFor(at("1999-12-31 23:55"))
		w.must(w.them.Create(w.ctx, orphan))
		w.must(w.them.Create(w.ctx, cronJob(func(s *CronJobSpec) { s.ConcurrencyPolicy = ReplaceConcurrent })))
		w.until("00:06")
		w.wantJobs("00:00* 00:05* 23:55*")
		if active := w.cron().Status.Active; len(active) != 1 {
			t.Errorf("active %v", active)
		}
	})
}

// A CronJob takes the name of one that is gone, whose Jobs have not been collected yet: they are not its own, and it
// does not make up for runs from before its time.
func TestSameName(t *testing.T) {
	inWorld(t, func(w *world) {
		w.must(w.them.Create(w.ctx, cronJob()))
		w.until("00:06")
		w.finish(batchv1.JobComplete)
		w.stop()
		w.until("00:11")
		w.must(w.them.Delete(w.ctx, cronJob()))
		w.must(w.them.Create(w.ctx, cronJob()))
		w.start()
		w.until("00:14")
		w.wantJobs("00:05")
		if c := w.cron(); c.Status.LastScheduleTime != nil {
			t.Errorf("status %+v", c.Status)
		}
		w.until("00:16")
		w.wantJobs("00:05 00:15*")
	})
}

// TestSampleWithPretendedJobs: what the package's comment says to type has a Job at every minute, which ends, and
// keeps two.
func TestSampleWithPretendedJobs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.stop()
		w.pretend = 20 * time.Second
		w.start()
		object := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal(sample, &object.Object))
		w.must(w.them.Create(w.ctx, object))
		check := func(active, done int) {
			t.Helper()
			var list batchv1.JobList
			w.must(w.them.List(w.ctx, &list, client.InNamespace("default")))
			if all := sortJobs(list.Items); len(all.active) != active || len(all.successful) != done ||
				len(all.failed) != 0 {
				t.Errorf("%s: %d active, %d successful, %d failed Jobs, want %d, %d, 0",
					time.Now().Format(time.TimeOnly),
					len(all.active), len(all.successful), len(all.failed), active, done)
			}
		}
		w.until("00:02")
		time.Sleep(10 * time.Second)
		check(1, 0)
		time.Sleep(20 * time.Second)
		check(0, 1)
		w.until("00:05")
		time.Sleep(10 * time.Second)
		check(1, 2)
		time.Sleep(20 * time.Second)
		check(0, 2)
	})
}
