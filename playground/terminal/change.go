package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flyball-dev/flyball/client/manifest"
)

// manager is the field manager of what the terminal applies.
const manager = "kubectl"

// declared reads what the editor has.
func (c *command) declared() ([]manifest.Object, []target, error) {
	all, err := manifest.Read("editor", strings.NewReader(c.manifest))
	if err == nil && len(all) == 0 {
		err = errors.New("no objects passed: write them into the editor")
	}
	targets := make([]target, len(all))
	for i, m := range all {
		mapping, err := c.serves(m.GroupVersionKind())
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", m.From, err)
		}
		targets[i] = target{mapping, m.GetName()}
	}
	return all, targets, err
}

// within runs do in the namespace of an object.
func (c *command) within(m manifest.Object, do func() error) error {
	before := c.namespace
	defer func() { c.namespace = before }()
	if m.GetNamespace() != "" {
		c.namespace = m.GetNamespace()
	}
	return do()
}

// apply applies what the editor has, on the server.
func (c *command) apply(ctx context.Context) error {
	if !c.follow || len(c.args) != 1 || c.args[0] != "-" {
		return errors.New("must specify -f -: it is the editor")
	}
	all, targets, err := c.declared()
	if err != nil {
		return err
	}
	var errs []error
	for i, m := range all {
		errs = append(errs, c.within(m, func() error { return c.applyOne(ctx, targets[i], m.Unstructured) }))
		if i%20 == 19 {
			time.Sleep(time.Millisecond) // In a browser, messages come in when nothing else is to be done.
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func (c *command) applyOne(ctx context.Context, t target, o *unstructured.Unstructured) error {
	if t.scoped() {
		o.SetNamespace(c.namespace)
	}
	change := "configured"
	before, err := c.objects(t).Get(ctx, t.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		change = "created"
	} else if err != nil {
		return err
	}
	now, err := c.objects(t).Apply(ctx, t.name, o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return err
	}
	if change != "created" && now.GetResourceVersion() == before.GetResourceVersion() {
		change = "unchanged"
	}
	fmt.Fprintln(c.out, t, change)
	return nil
}

// create creates a Deployment.
func (c *command) create(ctx context.Context) error {
	if len(c.args) != 2 || !strings.HasPrefix("deployments", c.args[0]) || c.image == "" {
		return errors.New("create makes Deployments: create deployment NAME --image=IMAGE; all else is for apply -f -")
	}
	t, err := c.one(c.args)
	if err != nil {
		return err
	}
	labels := map[string]any{"app": t.name}
	container := c.image[strings.LastIndexByte(c.image, '/')+1:]
	container, _, _ = strings.Cut(container, "@")
	container, _, _ = strings.Cut(container, ":")
	_, err = c.objects(t).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": t.name, "labels": labels},
		"spec": map[string]any{
			"replicas": int64(max(c.replicas, 1)),
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"containers": []any{
					map[string]any{"name": container, "image": c.image},
				}},
			},
		},
	}}, metav1.CreateOptions{FieldManager: manager})
	return c.did(t, "created", err)
}

// did prints what has happened to a target, unless err is not nil.
func (c *command) did(t target, what string, err error) error {
	if err == nil {
		fmt.Fprintln(c.out, t, what)
	}
	return err
}

// patch changes a target.
func (c *command) patch(ctx context.Context, t target, kind types.PatchType, patch any, part ...string) error {
	text, err := json.Marshal(patch)
	if err == nil {
		_, err = c.objects(t).Patch(ctx, t.name, kind, text, metav1.PatchOptions{FieldManager: manager}, part...)
	}
	return err
}

func (c *command) scale(ctx context.Context) error {
	if c.replicas < 0 {
		return errors.New(`required flag(s) "replicas" not set`)
	}
	t, err := c.one(c.args)
	if err != nil {
		return err
	}
	patch := map[string]any{"spec": map[string]any{"replicas": c.replicas}}
	return c.did(t, "scaled", c.patch(ctx, t, types.MergePatchType, patch, "scale"))
}

// set sets the image of containers.
func (c *command) set(ctx context.Context) error {
	if len(c.args) < 3 || c.args[0] != "image" {
		return errors.New("the command is: set image TYPE/NAME CONTAINER=IMAGE")
	}
	var names []string
	var containers []map[string]any
	for _, arg := range c.args[1:] {
		container, image, ok := strings.Cut(arg, "=")
		if !ok {
			names = append(names, arg)
			continue
		}
		containers = append(containers, map[string]any{"name": container, "image": image})
	}
	t, err := c.one(names)
	if err != nil {
		return err
	}
	o, err := c.objects(t).Get(ctx, t.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, wanted := range containers {
		if !hasContainer(o, wanted["name"]) {
			return fmt.Errorf("unable to find container named %q", wanted["name"])
		}
	}
	return c.did(t, "image updated", c.patch(ctx, t, types.StrategicMergePatchType, template(map[string]any{
		"spec": map[string]any{"containers": containers},
	})))
}

func hasContainer(o *unstructured.Unstructured, name any) bool {
	all, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, each := range all {
		if container, _ := each.(map[string]any); container["name"] == name {
			return true
		}
	}
	return false
}

// template is a patch of the template of pods.
func template(patch map[string]any) map[string]any {
	return map[string]any{"spec": map[string]any{"template": patch}}
}

// delete deletes objects, and waits until they are gone.
func (c *command) delete(ctx context.Context) error {
	if c.follow {
		all, targets, err := c.declared()
		for i, m := range all {
			if err == nil {
				err = c.within(m, func() error { return c.deleteOne(ctx, targets[i]) })
			}
		}
		return err
	}
	found, err := c.targets(c.args)
	if err != nil {
		return err
	}
	for _, t := range found {
		names := []string{t.name}
		if t.name == "" {
			if c.selector == "" {
				return errors.New("resource(s) were provided, but no name was specified")
			}
			all, err := c.objects(t).List(ctx, metav1.ListOptions{LabelSelector: c.selector})
			if err != nil {
				return err
			}
			names = nil
			for _, o := range all.Items {
				names = append(names, o.GetName())
			}
		}
		for _, name := range names {
			if err := c.deleteOne(ctx, target{t.RESTMapping, name}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *command) deleteOne(ctx context.Context, t target) error {
	before, err := c.objects(t).Get(ctx, t.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err = c.objects(t).Delete(ctx, t.name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		return err
	}
	from := ""
	if t.scoped() {
		from = " from " + c.namespace + " namespace"
	}
	fmt.Fprintf(c.out, "%s %q deleted%s\n", t.kind(), t.name, from)
	if !c.wait {
		return nil
	}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		now, err := c.objects(t).Get(ctx, t.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && now.GetUID() != before.GetUID(), err
	})
}
