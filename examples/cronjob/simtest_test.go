package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

// Annotations of a Job that say how its Pods behave.
const (
	takes = "example.com/takes" // how long they run
	fails = "example.com/fails" // they fail
)

// runner is the Job controller.
type runner struct{ client.Client }

// newRunner builds a process with the Job controller.
func newRunner(e *simtest.Env) (simtest.Program, error) {
	m, err := ctrl.NewManager(e.Config(), ctrl.Options{})
	if err != nil {
		return nil, err
	}
	return m, ctrl.NewControllerManagedBy(m).For(&batchv1.Job{}).Named("jobs").Complete(&runner{m.GetClient()})
}

// Reconcile implements ctrl.Reconciler.
func (r *runner) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var job batchv1.Job
	if err := r.Get(ctx, request.NamespacedName, &job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	length, err := time.ParseDuration(job.Annotations[takes])
	if err != nil {
		return ctrl.Result{}, err
	}
	if job.Annotations[fails] == "" {
		return (&pretender{r.Client, length}).Reconcile(ctx, request)
	}
	if outcomeOf(&job) != "" || job.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	job.Status.StartTime, job.Status.Failed = &job.CreationTimestamp, 1
	for _, c := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: c, Status: corev1.ConditionTrue, Reason: "Failed", LastTransitionTime: metav1.Now(),
		})
	}
	return ctrl.Result{}, r.Status().Update(ctx, &job)
}

// A CronJob runs every two minutes: successfully, in vain, with a run that the next one waits for, and with a run that
// the next one replaces. It is suspended for a while, and replaced by another of its name.
func TestSimulatedLife(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	addToScheme(scheme)
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(crd, &definition.Object); err != nil {
		t.Fatal(err)
	}
	simtest.Check(t, simtest.Scenario{
		Scheme:  scheme,
		Objects: []runtime.Object{definition},
		Build: func(e *simtest.Env) (simtest.Program, error) {
			return newManager(context.Background(), e.Config(), options{})
		},
		Others: []func(*simtest.Env) (simtest.Program, error){newRunner, simulated.GarbageCollector(
			batchv1.Resource("jobs"), groupVersion.WithResource("cronjobs").GroupResource(),
		)},
		Roles:  simulated.Roles(t, "role.yaml"),
		Budget: 2 * time.Second,
		Script: liveByTheClock,
		Always: map[string]func(s *simtest.State) error{"one run at a time": oneAtATime},
		// Names of Jobs tell when they run, so ends cannot be compared by them.
		Matches: onlyTheLast,
	})
}

// liveByTheClock is the script. A run that comes too late is left out; what counts is the last one.
func liveByTheClock(u *simtest.User) {
	midnight := time.Now().Add(24*time.Hour - 1).Truncate(24 * time.Hour)
	at := func(minutes time.Duration) { u.Wait(time.Until(midnight.Add(minutes * time.Minute))) }
	annotations := func(c *CronJob) map[string]string { return c.Spec.JobTemplate.Annotations }
	tick := cronJob(func(s *CronJobSpec) {
		s.Schedule, s.ConcurrencyPolicy = "2,4,6,8,10 0 * * *", ForbidConcurrent
		s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = ptr.To[int32](1), ptr.To[int32](1)
		s.JobTemplate.Annotations = map[string]string{takes: "30s"}
	})
	at(0)
	u.Create(tick)
	at(3)
	simtest.Update(u, tick, func(c *CronJob) { annotations(c)[fails] = "true" })
	at(5)
	simtest.Update(u, tick, func(c *CronJob) { c.Spec.Suspend, c.Spec.FailedJobsHistoryLimit = true, ptr.To[int32](0) })
	u.Wait(15 * time.Second)
	u.Delete(tick)
	u.Create(tick)
	simtest.Update(u, tick, func(c *CronJob) { annotations(c)[takes] = "150s" })
	at(9)
	simtest.Update(u, tick, func(c *CronJob) { c.Spec.ConcurrencyPolicy = ReplaceConcurrent })
	at(13)
}

// oneAtATime: the policies Forbid and Replace let no two runs be active.
func oneAtATime(s *simtest.State) error {
	active := ""
	for _, job := range simtest.List[*batchv1.Job](s, "") {
		if outcomeOf(job) != "" || job.DeletionTimestamp != nil {
			continue
		}
		if active != "" {
			return fmt.Errorf("%s and %s are active", active, job.Name)
		}
		active = job.Name
	}
	return nil
}

// onlyTheLast: the Job of 0:10 is complete, and the only one.
func onlyTheLast(s *simtest.State) error {
	cron, ok := simtest.Get[*CronJob](s, "default", "tick")
	if !ok || cron.Status.LastScheduleTime == nil || cron.Status.LastScheduleTime.UTC().Minute() != 10 {
		return fmt.Errorf("the CronJob is %+v", cron)
	}
	list := simtest.List[*batchv1.Job](s, "")
	if len(list) != 1 || outcomeOf(list[0]) != batchv1.JobComplete ||
		list[0].Name != cron.jobFor(cron.Status.LastScheduleTime.Time).Name {
		return fmt.Errorf("the Jobs are %+v", list)
	}
	return nil
}
