package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"text/tabwriter"
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
	run := map[string]func(context.Context, target) error{
		"status": c.status, "history": c.history, "undo": c.undo,
		"restart": c.change, "pause": c.change, "resume": c.change,
	}[c.args[0]]
	if run == nil {
		return fmt.Errorf("unknown command \"rollout %s\"", c.args[0])
	}
	return run(ctx, t)
}

// change restarts, pauses or resumes a rollout.
func (c *command) change(ctx context.Context, t target) error {
	d, err := c.deployment(ctx, t)
	if err != nil {
		return err
	}
	how := c.args[0]
	why, patch := "", fmt.Sprintf(`{"spec":{"paused":%t}}`, how == "pause")
	switch {
	case how == "restart" && d.Spec.Paused:
		why = "can't restart paused deployment (run rollout resume first)"
	case how == "restart":
		patch = fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`,
			time.Now().Format(time.RFC3339))
	case how == "pause" && d.Spec.Paused:
		why = "is already paused"
	case how == "resume" && !d.Spec.Paused:
		why = "is not paused"
	}
	if why != "" {
		return fmt.Errorf("%s %q %s", t.Resource.GroupResource(), t.name, why)
	}
	past := map[string]string{"pause": "paused", "resume": "resumed", "restart": "restarted"}[how]
	return c.did(t, past, c.patch(ctx, t, types.MergePatchType, patch))
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
	for _, condition := range d.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Reason == "ProgressDeadlineExceeded" {
			err = fmt.Errorf("deployment %q exceeded its progress deadline", d.Name)
		}
	}
	s, want := d.Status, *d.Spec.Replicas
	switch {
	case d.Generation > s.ObservedGeneration:
		return "Waiting for deployment spec update to be observed...", false, nil
	case err != nil:
		return "", false, err
	case s.UpdatedReplicas < want:
		text = fmt.Sprintf("%d out of %d new replicas have been updated...", s.UpdatedReplicas, want)
	case s.Replicas > s.UpdatedReplicas:
		text = fmt.Sprintf("%d old replicas are pending termination...", s.Replicas-s.UpdatedReplicas)
	case s.AvailableReplicas < s.UpdatedReplicas:
		text = fmt.Sprintf("%d of %d updated replicas are available...", s.AvailableReplicas, s.UpdatedReplicas)
	default:
		return fmt.Sprintf("deployment %q successfully rolled out", d.Name), true, nil
	}
	return fmt.Sprintf("Waiting for deployment %q rollout to finish: %s", d.Name, text), false, nil
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
	all, err := c.objects(c.target(sets, "")).List(ctx, metav1.ListOptions{
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
	w := tabwriter.NewWriter(c.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "REVISION\tCHANGE-CAUSE")
	for i := range sets {
		cause := cmp.Or(sets[i].Annotations["kubernetes.io/change-cause"], "<none>")
		fmt.Fprintf(w, "%d\t%s\n", revision(&sets[i]), cause)
	}
	fmt.Fprintln(w)
	return w.Flush()
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
	text, err := json.Marshal(earlier)
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template","value":%s}]`, text)
	return c.did(t, "rolled back", c.patch(ctx, t, types.JSONPatchType, patch))
}
