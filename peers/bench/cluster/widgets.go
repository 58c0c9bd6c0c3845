package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	rtclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/peers/bench/loop"
)

// widgets is the load of an operator: that of package loop.
func widgets(objects int) Load {
	l := Load{
		Name:    "widgets",
		Title:   fmt.Sprintf("an operator of %d custom resources: each created, updated three times, deleted", objects),
		Objects: objects, Wave: objects, Rate: 250,
		Steps: []Step{
			{"create", "create", func(ctx context.Context, c rtclient.Client, step, name string) error {
				return c.Create(ctx, &loop.Widget{ObjectMeta: meta(name), Spec: loop.WidgetSpec{Value: step}})
			}},
			{"update-1", "update", patchWidget},
			{"update-2", "update", patchWidget},
			{"update-3", "update", patchWidget},
			{deleted, "delete", func(ctx context.Context, c rtclient.Client, _, name string) error {
				return c.Delete(ctx, &loop.Widget{ObjectMeta: meta(name)})
			}},
		},
		Scheme: loop.WidgetScheme(), prepare: defineWidgets, sweep: nothing,
		watched: map[informer.Object]func(*tracker, informer.Object, bool){
			&loop.Widget{}: seeWidget, &corev1.ConfigMap{}: seeChild,
		},
	}
	for _, p := range loop.Programs {
		l.Systems = append(l.Systems, System{p.System, p.Folder, func(user Access) []string {
			return []string{"-server", user.URL, "-token", user.Token, "-ca", user.Authority}
		}})
	}
	return l
}

// deleted is the step of a Widget that is being deleted. The other steps are its value.
const deleted = "delete"

func patchWidget(ctx context.Context, c rtclient.Client, step, name string) error {
	patch := fmt.Sprintf(`{"spec":{"value":%q}}`, step)
	return c.Patch(ctx, &loop.Widget{ObjectMeta: meta(name)}, rtclient.RawPatch(types.MergePatchType, []byte(patch)))
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.bench.flyball.dev}
spec:
  group: bench.flyball.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [value]
            properties:
              value: {type: string, minLength: 1, maxLength: 64, pattern: "^[a-z0-9-]+$"}
          status:
            type: object
            properties:
              observedGeneration: {type: integer, format: int64}
`

// defineWidgets creates the definition and waits until it is served.
func defineWidgets(ctx context.Context, c rtclient.Client) error {
	var crd unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(definition), &crd.Object); err != nil {
		return err
	}
	if err := c.Create(ctx, &crd); err != nil {
		return err
	}
	return eventually(ctx, func() error { return c.List(ctx, &loop.WidgetList{}, rtclient.Limit(1)) })
}

// seeWidget: the effect is there when status and child are those of the spec; after a deletion, when both are gone.
func seeWidget(t *tracker, obj informer.Object, gone bool) {
	w := obj.(*loop.Widget)
	if gone || w.DeletionTimestamp != nil {
		t.see(w.Name, deleted, "", gone)
		return
	}
	t.see(w.Name, w.Spec.Value, w.Spec.Value, w.Status.ObservedGeneration >= w.Generation)
}

func seeChild(t *tracker, obj informer.Object, gone bool) {
	value := obj.(*corev1.ConfigMap).Data[loop.ValueKey]
	if gone {
		value = ""
	}
	t.seeChild(obj.GetName(), value)
}
