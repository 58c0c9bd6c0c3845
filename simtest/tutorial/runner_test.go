// Package tutorial is the program of docs/simtest.md: a controller with a bug, its mended form, and the test that finds
// the bug.
package tutorial

import (
	"context"
	"flag"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/docblock"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// runs is the annotation with the name of the Pod that a ConfigMap has led to.
const runs = "example.com/pod"

// runner starts a Pod for every ConfigMap that holds a command, and writes the Pod's name into an annotation.
type runner struct{ client.Client }

// Reconcile starts the Pod of one ConfigMap.
func (r *runner) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var task corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &task); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if task.Data["command"] == "" || task.Annotations[runs] != "" {
		return ctrl.Result{}, nil
	}
	pod := podOf(&task)
	if err := r.Create(ctx, pod); err != nil {
		return ctrl.Result{}, err
	}
	task.Annotations = map[string]string{runs: pod.Name}
	return ctrl.Result{}, r.Update(ctx, &task)
}

// podOf returns the Pod of a task.
func podOf(task *corev1.ConfigMap) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: task.Namespace, GenerateName: task.Name + "-",
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(task, corev1.SchemeGroupVersion.WithKind("ConfigMap")),
			},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "task", Image: "busybox:1.37", Command: []string{"sh", "-c", task.Data["command"]},
		}}},
	}
}

// newManager returns a manager that runs runner.
func newManager(config *rest.Config) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{})
	if err != nil {
		return nil, err
	}
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(&runner{mgr.GetClient()})
}

var (
	update  = flag.Bool("update", false, "write the output into docs/simtest.md")
	failing = flag.Bool("failing", false, "perform TestRunner, which fails")
)

// page is where the output stands, in a block of this name.
const (
	page  = "../../docs/simtest.md"
	block = "go test ./simtest/tutorial -run TestRunnerIsFound -update"
)

// task is a ConfigMap that runner starts a Pod for.
var task = &corev1.ConfigMap{
	ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello"},
	Data:       map[string]string{"command": "echo hello"},
}

func scenario(newManager func(*rest.Config) (ctrl.Manager, error)) simtest.Scenario {
	return simtest.Scenario{
		Build: func(e *simtest.Env) (simtest.Program, error) { return newManager(e.Config()) },
		Script: func(u *simtest.User) {
			u.Create(task)
			u.Settle()
		},
	}
}

// TestRunner fails, and is meant to.
func TestRunner(t *testing.T) {
	if !*failing {
		t.Skip("it fails; -failing performs it")
	}
	simtest.Check(t, simtest.Scenario{
		Build: func(e *simtest.Env) (simtest.Program, error) { return newManager(e.Config()) },
		Script: func(u *simtest.User) {
			u.Create(task)
			u.Settle()
		},
	})
}

// TestMended: the mended program passes.
func TestMended(t *testing.T) {
	const runs = 100
	finding, report := simtest.Find(t, scenario(newMended), simtest.Options{Runs: runs})
	if finding != nil || report.Runs != runs {
		t.Errorf("%d runs of %d, %v", report.Runs, runs, finding)
	}
}

// TestRunnerIsFound: the bug is found, and the page shows the story.
func TestRunnerIsFound(t *testing.T) {
	finding, _ := simtest.Find(t, scenario(newManager), simtest.Options{Budget: time.Minute})
	if finding == nil {
		t.Fatal("the bug is not found")
	}
	want := "```\n" + finding.String() + "```"
	if *update {
		if err := docblock.Write(page, block, want); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := docblock.Read(page, block); err != nil || got != want {
		t.Errorf("%s does not show the story (%v): run %s\n%s", page, err, block, want)
	}
}

// TestRunnerIsFoundBeforeTheDelete: the bug is found although the garbage collector removes all Pods before the end.
// The user may have seen the program settle before the delete, or not.
func TestRunnerIsFoundBeforeTheDelete(t *testing.T) {
	for _, test := range []struct {
		name string
		wait func(u *simtest.User)
		rule simtest.Rule
	}{
		{"settles", (*simtest.User).Settle, simtest.RuleEnd},
		{"waits", func(u *simtest.User) { u.Wait(time.Minute) }, simtest.RuleCreates},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, program := range []struct {
				build func(*rest.Config) (ctrl.Manager, error)
				want  simtest.Rule
			}{{newManager, test.rule}, {newMended, ""}} {
				s := scenario(program.build)
				s.Others = []func(*simtest.Env) (simtest.Program, error){simtest.GarbageCollector}
				s.Script = func(u *simtest.User) {
					u.Create(task)
					test.wait(u)
					simtest.Update(u, task, func(m *corev1.ConfigMap) { m.Data["command"] = "echo again" })
					test.wait(u)
					u.Delete(task)
				}
				finding, _ := simtest.Find(t, s, simtest.Options{Runs: 20, Budget: time.Minute})
				var found simtest.Rule
				if finding != nil {
					found = finding.Rule
				}
				if found != program.want {
					t.Errorf("found %q, want %q: %v", found, program.want, finding)
				}
			}
		})
	}
}
