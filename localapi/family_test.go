package localapi_test

import (
	"context"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi"
)

// TestAutoscalerVersions writes autoscalers in one version and reads them in the other: nothing is lost, and a write in
// one version takes no fields from those who own them in the other.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/autoscaling/v1/conversion.go.
func TestAutoscalerVersions(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(localapi.NewTest(t).RESTConfig())
	ctx := t.Context()
	v1, v2 := client.AutoscalingV1().HorizontalPodAutoscalers("default"),
		client.AutoscalingV2().HorizontalPodAutoscalers("default")
	_, err := v1.Create(ctx, &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment",
				Name: "web",
			},
			MaxReplicas: 5, TargetCPUUtilizationPercentage: ptr.To[int32](60),
		},
	}, metav1.CreateOptions{FieldManager: "old"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := v2.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m := h.Spec.Metrics; len(m) != 1 || *m[0].Resource.Target.AverageUtilization != 60 {
		t.Errorf("metrics in v2: %+v", m)
	}
	h.Spec.Metrics = append(h.Spec.Metrics, autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceMemory,
			Target: autoscalingv2.MetricTarget{
				Type:               autoscalingv2.UtilizationMetricType,
				AverageUtilization: ptr.To[int32](70),
			},
		},
	})
	h.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](30)},
	}
	if _, err := v2.Update(ctx, h, metav1.UpdateOptions{FieldManager: "new"}); err != nil {
		t.Fatal(err)
	}
	old, err := v1.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"maxReplicas":9}}`),
		metav1.PatchOptions{FieldManager: "old"})
	if err != nil {
		t.Fatal(err)
	}
	if old.Generation != 3 || *old.Spec.TargetCPUUtilizationPercentage != 60 {
		t.Errorf("v1 after both writes: generation %d, %+v", old.Generation, old.Spec)
	}
	h, err = v2.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if h.Spec.MaxReplicas != 9 || len(h.Spec.Metrics) != 2 || h.Spec.Behavior == nil ||
		*h.Spec.Behavior.ScaleDown.StabilizationWindowSeconds != 30 {
		t.Errorf("v2 after a write in v1: %+v", h.Spec)
	}
	if len(h.Annotations) > 0 {
		t.Errorf("what stands in annotations in v1 does so in v2 too: %v", h.Annotations)
	}
	owners := map[string]string{}
	for _, m := range h.ManagedFields {
		owners[m.Manager] = m.APIVersion
	}
	if owners["old"] != "autoscaling/v1" || owners["new"] != "autoscaling/v2" {
		t.Errorf("managed fields: %v", owners)
	}
}

// TestEventGroups reads events of the core group as events.k8s.io, and watches them there.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/events/v1/conversion.go, pkg/apis/core/validation/events.go.
func TestEventGroups(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(localapi.NewTest(t).RESTConfig())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events := client.EventsV1().Events("default")
	watch, err := events.Watch(ctx, metav1.ListOptions{FieldSelector: "regarding.name=web"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	for _, name := range []string{"other", "web"} {
		_, err = client.CoreV1().Events("default").Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Reason: "Started", Message: "It runs.",
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: name},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	seen, ok := (<-watch.ResultChan()).Object.(*eventsv1.Event)
	if !ok || seen.Name != "web" || seen.Note != "It runs." || seen.Regarding.Name != "web" {
		t.Errorf("seen by the watch: %+v", seen)
	}
	_, err = events.Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "loose"}, Regarding: corev1.ObjectReference{Namespace: "default"},
		Type: "Normal",
	}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("an event without a time: %v", err)
	}
	strict := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "strict"},
		Regarding:  corev1.ObjectReference{Namespace: "default", Name: "web"},
		EventTime:  metav1.NowMicro(), ReportingController: "example.com/c", ReportingInstance: "c-1", Action: "Start",
		Reason: "Started",
		Note:   "Again.", Type: "Normal",
	}
	if _, err := events.Create(ctx, strict, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = events.Get(ctx, "none", metav1.GetOptions{})
	if err == nil || err.Error() != `events.events.k8s.io "none" not found` {
		t.Errorf("an event that there is not: %v", err)
	}
	core, err := client.CoreV1().Events("default").Get(ctx, "strict", metav1.GetOptions{})
	if err != nil || core.Message != "Again." || core.InvolvedObject.Name != "web" {
		t.Errorf("in the core group: %+v, %v", core, err)
	}
}
