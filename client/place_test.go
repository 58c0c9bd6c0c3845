package client_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/flyball-dev/flyball/client"
)

// TestWritesWithoutAName: without a name the path is the collection's. A deletion there would delete all objects.
func TestWritesWithoutAName(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		nameless := configMap("")
		empty := client.RawPatch(types.MergePatchType, []byte("{}"))
		for what, err := range map[string]error{
			"delete":             w.Delete(w.ctx, nameless),
			"update":             w.Update(w.ctx, nameless),
			"patch":              w.Patch(w.ctx, nameless, empty),
			"status":             w.Status().Update(w.ctx, nameless),
			"patch of status":    w.Status().Patch(w.ctx, nameless, empty),
			"create a binding":   w.SubResource("binding").Create(w.ctx, nameless, &corev1.Binding{}),
			"apply":              w.Apply(w.ctx, corev1apply.ConfigMap("", "default"), client.FieldOwner("me")),
			"deletion, dry run":  w.Delete(w.ctx, nameless, client.DryRunAll),
			"deletion of a node": w.Delete(w.ctx, &corev1.Node{}),
		} {
			if err == nil || !strings.Contains(err.Error(), "has no name") {
				t.Errorf("%s: %v", what, err)
			}
		}
		w.wantNames("a b")
	}, configMap("a"), configMap("b"))
}

// TestMetadataAreNotWritten: a write of metadata in the place of the whole object would remove all other fields.
func TestMetadataAreNotWritten(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		bare := &metav1.PartialObjectMetadata{}
		bare.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		bare.Namespace, bare.Name = "default", "a"
		for what, err := range map[string]error{"create": w.Create(w.ctx, bare), "update": w.Update(w.ctx, bare)} {
			if err == nil || !strings.Contains(err.Error(), "bare metadata cannot be written") {
				t.Errorf("%s: %v", what, err)
			}
		}
		before := bare.DeepCopy()
		bare.Labels = map[string]string{"x": "y"}
		w.must(w.Patch(w.ctx, bare, client.MergeFrom(before)))
		w.must(w.Delete(w.ctx, bare))
		w.wantNames("")
	}, configMap("a"))
}

// TestSubResourceBodies: a body without a name gets the name of its object, and a patch changes the body.
func TestSubResourceBodies(t *testing.T) {
	labels := map[string]string{"app": "d"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}}
	d.Spec.Selector, d.Spec.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	inWorld(t, client.Options{}, func(w *world) {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
		w.must(w.SubResource("scale").Update(w.ctx, d, client.WithSubResourceBody(scale)))
		if scale.Name != "d" || scale.Namespace != "default" || scale.UID == "" {
			t.Errorf("the answer: %+v", scale)
		}
		before := scale.DeepCopy()
		scale.Spec.Replicas = 5
		w.must(w.SubResource("scale").Patch(w.ctx, d, client.MergeFrom(before), client.WithSubResourceBody(scale)))
		var got appsv1.Deployment
		w.must(w.Get(w.ctx, keyOf(d), &got))
		if *got.Spec.Replicas != 5 {
			t.Errorf("%d replicas", *got.Spec.Replicas)
		}
		w.must(
			w.SubResource("binding").Create(w.ctx, pod,
				&corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}),
		)
		w.must(w.Get(w.ctx, keyOf(pod), pod))
		if pod.Spec.NodeName != "n" {
			t.Errorf("the pod is on %q", pod.Spec.NodeName)
		}
	}, d, pod)
}
