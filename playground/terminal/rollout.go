package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// revisionKey is the annotation of the revision of a Deployment and of its ReplicaSets.
const revisionKey = "deployment.kubernetes.io/revision"

// rollout runs what begins with "rollout". It knows Deployments only.
func (c *command) rollout(ctx context.Context) error {
	if len(c.args) < 2 {
		return errors.New("the command is: rollout status|history|undo|restart|pause|resume deployment/NAME")
	}
	t, err := c.one(c.args[1:])
	if err != nil {
		return err
	}
	if t.kind() != "deployment.apps" {
		return fmt.Errorf("the playground has rollouts of Deployments only, not of %s", t.kind())
	}
	switch c.args[0] {
	case "status":
		return c.status(ctx, t)
	case "history":
		return c.history(ctx, t)
	case "undo":
		return c.undo(ctx, t)
	case "restart", "pause", "resume":
		return c.change(ctx, t, c.args[0])
	}
	return fmt.Errorf("unknown command \"rollout %s\"", c.args[0])
}

// change restarts, pauses or resumes a rollout.
func (c *command) change(ctx context.Context, t target, how string) error {
	d, err := c.deployment(ctx, t)
	if err != nil {
		return err
	}
	refuse := func(why string) error {
		return fmt.Errorf("%s %q %s", t.Resource.GroupResource(), t.name, why)
	}
	pause := func(paused any) error {
		return c.patch(ctx, t, types.MergePatchType, map[string]any{"spec": map[string]any{"paused": paused}})
	}
	switch {
	case how == "resume" && d.Spec.Paused:
		return c.did(t, "resumed", pause(nil))
	case how == "resume":
		return refuse("is not paused")
	case how == "pause" && d.Spec.Paused:
		return refuse("is already paused")
	case how == "pause":
		return c.did(t, "paused", pause(true))
	case d.Spec.Paused:
		return refuse("can't restart paused deployment (run rollout resume first)")
	}
	return c.did(t, "restarted", c.patch(ctx, t, types.StrategicMergePatchType, template(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{
			"kubectl.kubernetes.io/restartedAt": time.Now().Format(time.RFC3339),
		}},
	})))
}

// deployment reads the Deployment.
func (c *command) deployment(ctx context.Context, t target) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	o, err := c.objects(t).Get(ctx, t.name, metav1.GetOptions{})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d)
	}
	return d, err
}

// status prints how far a rollout is, each time that it gets further, until its end.
func (c *command) status(ctx context.Context, t target) error {
	before := ""
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		d, err := c.deployment(ctx, t)
		if err != nil {
			return false, err
		}
		text, done, err := progress(d)
		if err == nil && text != before {
			before = text
			fmt.Fprintln(c.out, text)
		}
		return done, err
	})
}

// progress says how far a rollout is.
//
// Source: k8s.io/kubectl v0.37.2 pkg/polymorphichelpers/rollout_status.go DeploymentStatusViewer.Status.
func progress(d *appsv1.Deployment) (text string, done bool, err error) {
	s, want := d.Status, int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	waits := func(format string, args ...any) (string, bool, error) {
		return fmt.Sprintf("Waiting for deployment %q rollout to finish: "+format,
			append([]any{d.Name}, args...)...), false, nil
	}
	if d.Generation > s.ObservedGeneration {
		return "Waiting for deployment spec update to be observed...", false, nil
	}
	for _, condition := range s.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Reason == "ProgressDeadlineExceeded" {
			return "", false, fmt.Errorf("deployment %q exceeded its progress deadline", d.Name)
		}
	}
	switch {
	case s.UpdatedReplicas < want:
		return waits("%d out of %d new replicas have been updated...", s.UpdatedReplicas, want)
	case s.Replicas > s.UpdatedReplicas:
		return waits("%d old replicas are pending termination...", s.Replicas-s.UpdatedReplicas)
	case s.AvailableReplicas < s.UpdatedReplicas:
		return waits("%d of %d updated replicas are available...", s.AvailableReplicas, s.UpdatedReplicas)
	}
	return fmt.Sprintf("deployment %q successfully rolled out", d.Name), true, nil
}

// revisions returns the ReplicaSets of a Deployment, in the order of their revisions.
func (c *command) revisions(ctx context.Context, t target) ([]appsv1.ReplicaSet, *appsv1.Deployment, error) {
	d, err := c.deployment(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	sets, err := c.mapping("replicasets.apps")
	if err != nil {
		return nil, nil, err
	}
	all, err := c.objects(target{RESTMapping: sets}).List(ctx, metav1.ListOptions{
		LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector),
	})
	if err != nil {
		return nil, nil, err
	}
	var found []appsv1.ReplicaSet
	for _, o := range all.Items {
		var set appsv1.ReplicaSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &set); err != nil {
			return nil, nil, err
		}
		if metav1.IsControlledBy(&set, d) {
			found = append(found, set)
		}
	}
	slices.SortFunc(found, func(a, b appsv1.ReplicaSet) int { return cmp.Compare(revision(&a), revision(&b)) })
	return found, d, nil
}

func revision(o metav1.Object) int {
	n, _ := strconv.Atoi(o.GetAnnotations()[revisionKey])
	return n
}

func (c *command) history(ctx context.Context, t target) error {
	sets, _, err := c.revisions(ctx, t)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, t, "")
	rows := [][]string{{"REVISION", "CHANGE-CAUSE"}}
	for i := range sets {
		cause := cmp.Or(sets[i].Annotations["kubernetes.io/change-cause"], "<none>")
		rows = append(rows, []string{strconv.Itoa(revision(&sets[i])), cause})
	}
	(&columns{tight: true}).print(c.out, rows)
	fmt.Fprintln(c.out)
	return nil
}

// undo restores the template of an earlier revision.
func (c *command) undo(ctx context.Context, t target) error {
	sets, d, err := c.revisions(ctx, t)
	if err != nil {
		return err
	}
	if d.Spec.Paused {
		return errors.New("you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' " +
			"and try again")
	}
	sets = slices.DeleteFunc(sets, func(s appsv1.ReplicaSet) bool {
		if c.revision != 0 {
			return revision(&s) != c.revision
		}
		return revision(&s) >= revision(d)
	})
	if len(sets) == 0 {
		if c.revision != 0 {
			return fmt.Errorf("unable to find specified revision %d in history", c.revision)
		}
		return fmt.Errorf("no rollout history found for deployment %q", d.Name)
	}
	earlier := sets[len(sets)-1].Spec.Template
	delete(earlier.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	if apiequality.Semantic.DeepEqual(earlier, d.Spec.Template) {
		why := fmt.Sprintf("skipped rollback (current template already matches revision %d)", c.revision)
		return c.did(t, why, nil)
	}
	patch := []map[string]any{{"op": "replace", "path": "/spec/template", "value": earlier}}
	return c.did(t, "rolled back", c.patch(ctx, t, types.JSONPatchType, patch))
}
