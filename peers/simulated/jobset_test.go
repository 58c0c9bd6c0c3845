package simulated

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	jobsetv1 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/constants"
	jobsetcontrollers "sigs.k8s.io/jobset/pkg/controllers"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

func jobSetScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(jobsetv1.AddToScheme(scheme))
	return scheme
}

// newJobSet builds the operator's manager.
//
// Source: sigs.k8s.io/jobset v0.12.0 main.go, without its webhooks and the controller of pods, which serves exclusive
// placement.
func newJobSet(e *simtest.Env) (simtest.Program, error) {
	mgr, err := newManager(e, jobSetScheme())
	if err != nil {
		return nil, err
	}
	if err := jobsetcontrollers.SetupJobSetIndexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	return simtest.ProgramFunc(mgr.Start), jobsetcontrollers.NewJobSetReconciler(mgr.GetClient(), mgr.GetScheme(),
		mgr.GetEventRecorder("jobset")).SetupWithManager(mgr)
}

// jobSet has two Jobs, as the operator's webhook admits it.
func jobSet() *jobsetv1.JobSet {
	return &jobsetv1.JobSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train"},
		Spec: jobsetv1.JobSetSpec{
			SuccessPolicy: &jobsetv1.SuccessPolicy{Operator: jobsetv1.OperatorAll},
			StartupPolicy: &jobsetv1.StartupPolicy{StartupPolicyOrder: jobsetv1.AnyOrder},
			FailurePolicy: &jobsetv1.FailurePolicy{MaxRestarts: 3, RestartStrategy: jobsetv1.Recreate},
			Network: &jobsetv1.Network{
				EnableDNSHostnames: ptr.To(true), PublishNotReadyAddresses: ptr.To(true),
			},
			TTLSecondsAfterFinished: ptr.To[int32](60),
			ReplicatedJobs: []jobsetv1.ReplicatedJob{{
				Name: "workers", Replicas: 2, GroupName: "default",
				Template: batchv1.JobTemplateSpec{Spec: job()},
			}},
		},
	}
}

func job() batchv1.JobSpec {
	return batchv1.JobSpec{
		Parallelism: ptr.To[int32](1), Completions: ptr.To[int32](1),
		CompletionMode: ptr.To(batchv1.IndexedCompletion),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyOnFailure,
			Containers:    []corev1.Container{{Name: "train", Image: "train:1"}},
		}},
	}
}

// finishJobs is as much of a Job controller as a scenario needs: of the first attempt, the second Job fails; in later
// ones, all Jobs succeed.
func finishJobs(e *simtest.Env) (simtest.Program, error) {
	mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{})
	if err != nil {
		return nil, err
	}
	c := mgr.GetClient()
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&batchv1.Job{}).Complete(ctrl.ReconcilerFunc(
		func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			var job batchv1.Job
			if err := c.Get(ctx, r.NamespacedName, &job); err != nil || len(job.Status.Conditions) > 0 {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			how := batchv1.JobComplete
			if job.Labels[constants.RestartsKey] == "0" {
				if how = batchv1.JobFailed; job.Labels[jobsetv1.JobIndexKey] == "0" {
					return ctrl.Result{}, nil
				}
			}
			job.Status.Conditions = []batchv1.JobCondition{{
				Type: how, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
			}}
			return ctrl.Result{}, c.Status().Update(ctx, &job)
		}))
}

// jobSetScenario creates a JobSet, whose Jobs are created anew because one fails, and succeed then. When its time is
// over, it is deleted. Then comes another of that name, which stays.
func jobSetScenario(t *testing.T) simtest.Scenario {
	return simtest.Scenario{
		Objects: definitions(t, "sigs.k8s.io/jobset", "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
		Scheme:  jobSetScheme(),
		Build:   newJobSet,
		Others:  []func(*simtest.Env) (simtest.Program, error){collectGarbage, finishJobs},
		Script: func(u *simtest.User) {
			u.Create(jobSet())
			u.Settle()
			second := jobSet()
			second.Spec.TTLSecondsAfterFinished = nil
			u.Create(second)
			u.Settle()
		},
	}
}

// TestJobSet: nothing is found.
func TestJobSet(t *testing.T) { expect(t, jobSetScenario(t), "", "") }
