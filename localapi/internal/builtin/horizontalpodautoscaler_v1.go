package builtin

import (
	"encoding/json"
	"maps"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// In autoscaling/v1, annotations hold what it has no fields for.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/autoscaling/annotations.go.
const (
	metricsAnnotation        = "autoscaling.alpha.kubernetes.io/metrics"
	currentMetricsAnnotation = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation     = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation       = "autoscaling.alpha.kubernetes.io/behavior"
)

// horizontalPodAutoscalers are autoscaling/v2, which is stored, and autoscaling/v1.
func horizontalPodAutoscalers() []*resource.Definition {
	all := family(horizontalPodAutoscaler(), resource.Member{
		Kind: autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
		New:  func() runtime.Object { return &autoscalingv1.HorizontalPodAutoscaler{} },
		ToFirst: func(obj runtime.Object) runtime.Object {
			return autoscalerV2(obj.(*autoscalingv1.HorizontalPodAutoscaler))
		},
		FromFirst: func(obj runtime.Object) runtime.Object {
			return autoscalerV1(obj.(*autoscalingv2.HorizontalPodAutoscaler))
		},
	})
	all[1].NewList = func() runtime.Object { return &autoscalingv1.HorizontalPodAutoscalerList{} }
	return all
}

// countsCPU reports whether a metric is the one that autoscaling/v1 has a field for.
func countsCPU(m *autoscalingv2.MetricSpec) bool {
	return m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil &&
		m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil
}

func cpuMetric(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   corev1.ResourceCPU,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
		},
	}
}

// autoscalerV1 converts to autoscaling/v1.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/autoscaling/v1/conversion.go
// Convert_autoscaling_HorizontalPodAutoscaler_To_v1_HorizontalPodAutoscaler.
func autoscalerV1(in *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv1.HorizontalPodAutoscaler {
	out := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: in.ObjectMeta}
	out.Annotations = withoutConverted(in.Annotations)
	recode(&in.Spec, &out.Spec)
	recode(&in.Status, &out.Status)
	out.Status.LastScaleTime = in.Status.LastScaleTime // JSON drops the zero time
	var metrics []autoscalingv1.MetricSpec
	for i := range in.Spec.Metrics {
		switch m := &in.Spec.Metrics[i]; {
		case !countsCPU(m):
			metrics = append(metrics, metricV1(m))
		case out.Spec.TargetCPUUtilizationPercentage == nil:
			out.Spec.TargetCPUUtilizationPercentage = ptr.To(*m.Resource.Target.AverageUtilization)
		}
	}
	var current []autoscalingv1.MetricStatus
	for i := range in.Status.CurrentMetrics {
		m := &in.Status.CurrentMetrics[i]
		current = append(current, metricStatusV1(m))
		if m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil &&
			m.Resource.Name == corev1.ResourceCPU {
			if percent := m.Resource.Current.AverageUtilization; percent != nil {
				out.Status.CurrentCPUUtilizationPercentage = ptr.To(*percent)
			}
		}
	}
	annotate(out, metricsAnnotation, metrics, len(metrics) > 0)
	annotate(out, currentMetricsAnnotation, current, len(current) > 0)
	annotate(out, conditionsAnnotation, in.Status.Conditions, len(in.Status.Conditions) > 0)
	if in.Spec.Behavior != nil {
		// In Go's names: the real server encodes its internal type.
		annotate(out, behaviorAnnotation, shown(in.Spec.Behavior), true)
	}
	return out
}

// annotate stores a value in an annotation, if it is needed.
func annotate(h *autoscalingv1.HorizontalPodAutoscaler, key string, value any, needed bool) {
	text, err := json.Marshal(value)
	if !needed || err != nil { // API types always marshal
		return
	}
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, key, string(text))
}

// withoutConverted returns a copy of annotations without those that stand for fields.
func withoutConverted(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	for _, key := range []string{
		metricsAnnotation, currentMetricsAnnotation, conditionsAnnotation,
		behaviorAnnotation,
	} {
		delete(out, key)
	}
	return out
}

// autoscalerV2 converts from autoscaling/v1. An annotation that cannot be read counts as none.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/autoscaling/v1/conversion.go
// Convert_v1_HorizontalPodAutoscaler_To_autoscaling_HorizontalPodAutoscaler.
func autoscalerV2(in *autoscalingv1.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	const defaultPercent = 80
	out := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: in.ObjectMeta}
	out.Annotations = withoutConverted(in.Annotations)
	recode(&in.Spec, &out.Spec)
	recode(&in.Status, &out.Status)
	out.Status.LastScaleTime = in.Status.LastScaleTime // JSON drops the zero time
	for _, m := range annotation[[]autoscalingv1.MetricSpec](in, metricsAnnotation) {
		out.Spec.Metrics = append(out.Spec.Metrics, metricV2(&m))
	}
	switch percent := in.Spec.TargetCPUUtilizationPercentage; {
	case percent != nil:
		out.Spec.Metrics = append(out.Spec.Metrics, cpuMetric(*percent))
	case len(out.Spec.Metrics) == 0:
		out.Spec.Metrics = []autoscalingv2.MetricSpec{cpuMetric(defaultPercent)}
	}
	if b := annotation[*autoscalingv2.HorizontalPodAutoscalerBehavior](in, behaviorAnnotation); b != nil &&
		*b != (autoscalingv2.HorizontalPodAutoscalerBehavior{}) {
		out.Spec.Behavior = b
	}
	if percent := in.Status.CurrentCPUUtilizationPercentage; percent != nil {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricStatus{
				Name:    corev1.ResourceCPU,
				Current: autoscalingv2.MetricValueStatus{AverageUtilization: ptr.To(*percent)},
			},
		}}
	}
	if current := annotation[[]autoscalingv1.MetricStatus](in, currentMetricsAnnotation); current != nil {
		out.Status.CurrentMetrics = nil // the annotation has more details
		for _, m := range current {
			out.Status.CurrentMetrics = append(out.Status.CurrentMetrics, metricStatusV2(&m))
		}
	}
	out.Status.Conditions = annotation[[]autoscalingv2.HorizontalPodAutoscalerCondition](in, conditionsAnnotation)
	return out
}

func annotation[T any](h *autoscalingv1.HorizontalPodAutoscaler, key string) (value T) {
	var none T
	if text, ok := h.Annotations[key]; ok && json.Unmarshal([]byte(text), &value) != nil {
		return none
	}
	return value
}

// metricFields are the fields of each kind of metric: their names in autoscaling/v1, which has them side by side, and
// their paths in autoscaling/v2. A metric's status has "current" where its specification has "target".
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/autoscaling/v1/conversion.go, also for what follows.
var metricFields = map[string]map[string]string{
	"object": {
		"target": "describedObject", "metricName": "metric.name", "selector": "metric.selector",
		"targetValue": "target.value", "averageValue": "target.averageValue",
	},
	"pods": {
		"metricName": "metric.name", "selector": "metric.selector", "targetAverageValue": "target.averageValue",
	},
	"resource": {
		"name": "name", "targetAverageUtilization": "target.averageUtilization",
		"targetAverageValue": "target.averageValue",
	},
	"containerResource": {
		"name": "name", "container": "container", "targetAverageUtilization": "target.averageUtilization",
		"targetAverageValue": "target.averageValue",
	},
	"external": {
		"metricName": "metric.name", "metricSelector": "metric.selector", "targetValue": "target.value",
		"targetAverageValue": "target.averageValue",
	},
}

// metricIn returns a metric, or the status of one, with its fields where the other version has them.
func metricIn[Out, In any](in *In, toV2, status bool) (out Out) {
	var metric map[string]any
	recode(in, &metric)
	for kind, names := range metricFields {
		source, ok := metric[kind].(map[string]any)
		if !ok {
			continue
		}
		moved := map[string]any{}
		for name, path := range names {
			if rest, ok := strings.CutPrefix(name, "target"); ok && rest != "" && status {
				name = "current" + rest
			}
			if status {
				path = strings.Replace(path, "target.", "current.", 1)
			}
			from, to := strings.Split(path, "."), []string{name}
			if toV2 {
				from, to = to, from
			}
			if value, ok, _ := unstructured.NestedFieldNoCopy(source, from...); ok {
				_ = unstructured.SetNestedField(moved, value, to...) // cannot fail: the paths are disjoint
			}
		}
		metric[kind] = moved
	}
	recode(metric, &out)
	return out
}

// recode decodes into out what in is in JSON.
func recode(in, out any) {
	text, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		panic(err) // cannot fail: the types are those of the API
	}
}

func metricV1(m *autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
	return metricIn[autoscalingv1.MetricSpec](m, false, false)
}

// metricV2 also derives the type of the target, which autoscaling/v1 does not have.
func metricV2(m *autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
	out := metricIn[autoscalingv2.MetricSpec](m, true, false)
	if s := out.Object; s != nil {
		s.Target.Type = autoscalingv2.ValueMetricType
		if s.Target.AverageValue != nil {
			s.Target.Type = autoscalingv2.AverageValueMetricType
			if s.Target.Value.IsZero() {
				s.Target.Value = nil
			}
		}
	}
	if s := out.Pods; s != nil {
		s.Target.Type = autoscalingv2.AverageValueMetricType
	}
	if s := out.Resource; s != nil {
		setUtilization(&s.Target)
	}
	if s := out.ContainerResource; s != nil {
		setUtilization(&s.Target)
	}
	if s := out.External; s != nil {
		s.Target.Type = autoscalingv2.AverageValueMetricType
		if s.Target.Value != nil {
			s.Target.Type = autoscalingv2.ValueMetricType
		}
	}
	return out
}

func setUtilization(t *autoscalingv2.MetricTarget) {
	t.Type = autoscalingv2.UtilizationMetricType
	if t.AverageUtilization == nil {
		t.Type = autoscalingv2.AverageValueMetricType
	}
}

func metricStatusV1(m *autoscalingv2.MetricStatus) autoscalingv1.MetricStatus {
	return metricIn[autoscalingv1.MetricStatus](m, false, true)
}

func metricStatusV2(m *autoscalingv1.MetricStatus) autoscalingv2.MetricStatus {
	return metricIn[autoscalingv2.MetricStatus](m, true, true)
}
