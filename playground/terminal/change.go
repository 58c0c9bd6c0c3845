package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client/manifest"
)

// manager is the field manager of what the terminal applies.
const manager = "kubectl"

// declared reads what the editor has.
func (c *command) declared() ([]target, error) {
	all, err := manifest.Read("editor", c.manifest)
	if err == nil && len(all) == 0 {
		err = errors.New("no objects passed: write them into the editor")
	}
	targets := make([]target, len(all))
	for i, m := range all {
		mapping, err := c.Serves(m.GroupVersionKind())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.From, err)
		}
		targets[i] = c.target(mapping, m.GetName())
		if targets[i].namespace != "" {
			targets[i].namespace = cmp.Or(m.GetNamespace(), targets[i].namespace)
		}
		targets[i].object = m.Unstructured
	}
	return targets, err
}

// apply applies what the editor has, on the server.
func (c *command) apply(ctx context.Context) error {
	if !c.follow || len(c.args) != 1 || c.args[0] != "-" {
		return errors.New("must specify -f -: it is the editor")
	}
	targets, err := c.declared()
	if err != nil {
		return err
	}
	count := 0
	return each(targets, func(t target) error {
		if count++; count%20 == 0 {
			time.Sleep(time.Millisecond) // In a browser, messages come in when nothing else is to be done.
		}
		if ctx.Err() != nil {
			return nil
		}
		t.object.SetNamespace(t.namespace)
		change := "configured"
		before, err := c.objects(t).Get(ctx, t.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			change = "created"
		} else if err != nil {
			return err
		}
		now, err := c.objects(t).Apply(ctx, t.name, t.object, metav1.ApplyOptions{FieldManager: manager, Force: true})
		if err == nil && change != "created" && now.GetResourceVersion() == before.GetResourceVersion() {
			change = "unchanged"
		}
		return c.did(t, change, err)
	})
}

// deployment is what "create deployment" creates.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: &name %q
  labels: {app: *name}
spec:
  replicas: %d
  selector: {matchLabels: {app: *name}}
  template:
    metadata: {labels: {app: *name}}
    spec: {containers: [{name: %q, image: %q}]}
`

// create creates a Deployment.
func (c *command) create(ctx context.Context) error {
	if len(c.args) != 2 || !strings.HasPrefix("deployments", c.args[0]) || c.image == "" {
		return errors.New("create makes Deployments: create deployment NAME --image=IMAGE; all else is for apply -f -")
	}
	t, err := c.one(c.args)
	if err != nil {
		return err
	}
	container := c.image[strings.LastIndexByte(c.image, '/')+1:]
	container, _, _ = strings.Cut(container, "@")
	container, _, _ = strings.Cut(container, ":")
	var o unstructured.Unstructured
	text := fmt.Appendf(nil, deployment, t.name, c.replicas, container, c.image)
	if err := yaml.Unmarshal(text, &o.Object); err != nil {
		return err
	}
	_, err = c.objects(t).Create(ctx, &o, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		err = errors.New("failed to create deployment: " + err.Error()) // kubectl, too, leaves out the reason.
	}
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
func (c *command) patch(ctx context.Context, t target, kind types.PatchType, patch string, part ...string) error {
	_, err := c.objects(t).Patch(ctx, t.name, kind, []byte(patch), metav1.PatchOptions{FieldManager: manager}, part...)
	return err
}

func (c *command) scale(ctx context.Context) error {
	if !c.changed("replicas") {
		return errors.New(`required flag(s) "replicas" not set`)
	}
	if c.replicas < 0 {
		//lint:ignore ST1005 these are the words of kubectl
		return errors.New("The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0")
	}
	t, err := c.one(c.args)
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, c.replicas)
	return c.did(t, "scaled", c.patch(ctx, t, types.MergePatchType, patch, "scale"))
}

// set sets the image of containers.
func (c *command) set(ctx context.Context) error {
	if len(c.args) < 3 || c.args[0] != "image" {
		return errors.New("the command is: set image TYPE/NAME CONTAINER=IMAGE")
	}
	var names []string
	var containers []map[string]string
	for _, arg := range c.args[1:] {
		if container, image, ok := strings.Cut(arg, "="); ok {
			containers = append(containers, map[string]string{"name": container, "image": image})
		} else {
			names = append(names, arg)
		}
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
	text, err := json.Marshal(containers)
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":%s}}}}`, text)
	return c.did(t, "image updated", c.patch(ctx, t, types.StrategicMergePatchType, patch))
}

func hasContainer(o *unstructured.Unstructured, name string) bool {
	all, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	return slices.ContainsFunc(all, func(each any) bool {
		container, _ := each.(map[string]any)
		return container["name"] == name
	})
}

// delete deletes objects, and waits until they are gone.
func (c *command) delete(ctx context.Context) error {
	var found []target
	var err error
	if c.follow {
		found, err = c.declared()
	} else if found, err = c.targets(c.args); err == nil && found[0].name == "" && c.selector == "" {
		err = errors.New("resource(s) were provided, but no name was specified")
	}
	if err != nil {
		return err
	}
	deleted := 0
	err = each(found, func(t target) error {
		all, err := c.read(ctx, t)
		for _, o := range all {
			t.name, t.namespace = o.GetName(), o.GetNamespace()
			err = errors.Join(err, c.deleteOne(ctx, t, o.GetUID()))
			deleted++
		}
		return err
	})
	if deleted == 0 && err == nil {
		fmt.Fprintln(c.out, "No resources found")
	}
	return err
}

func (c *command) deleteOne(ctx context.Context, t target, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	err := c.objects(t).Delete(ctx, t.name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		return err
	}
	from := ""
	if t.namespace != "" {
		from = " from " + t.namespace + " namespace"
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
		return err == nil && now.GetUID() != uid, err
	})
}
