package builtin

import (
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	api "github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func horizontalPodAutoscaler() *api.Definition {
	d := namespaced[autoscalingv2.HorizontalPodAutoscaler, autoscalingv2.HorizontalPodAutoscalerList](
		autoscalingv2.SchemeGroupVersion, "horizontalpodautoscalers", "hpa")
	d.Categories = []string{"all"}
	withStatus(d)
	withGeneration(d, "Spec")
	d.Default = mutate(defaultAutoscaler)
	d.Validate = rules(validateAutoscaler)
	listed(d, autoscalerRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/autoscaling/v2/defaults.go SetDefaults_HorizontalPodAutoscaler.
func defaultAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) {
	const cpuUtilization = 80
	setDefaultPtr(&h.Spec.MinReplicas, 1)
	if len(h.Spec.Metrics) == 0 {
		h.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{
					Type:               autoscalingv2.UtilizationMetricType,
					AverageUtilization: ptr.To[int32](cpuUtilization),
				},
			},
		}}
	}
	if b := h.Spec.Behavior; b != nil {
		const period = 15
		pods := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: period}
		percent := autoscalingv2.HPAScalingPolicy{
			Type: autoscalingv2.PercentScalingPolicy, Value: 100,
			PeriodSeconds: period,
		}
		defaultScaling(&b.ScaleUp, pods, percent)
		setDefaultPtr(&b.ScaleUp.StabilizationWindowSeconds, 0)
		defaultScaling(&b.ScaleDown, percent)
	}
}

func defaultScaling(rules **autoscalingv2.HPAScalingRules, policies ...autoscalingv2.HPAScalingPolicy) {
	setDefaultPtr(rules, autoscalingv2.HPAScalingRules{})
	setDefaultPtr(&(*rules).SelectPolicy, autoscalingv2.MaxChangePolicySelect)
	if (*rules).Policies == nil {
		(*rules).Policies = policies
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/autoscaling/validation/validation.go validateHorizontalPodAutoscalerSpec.
func validateAutoscaler(f verify.Field, h *autoscalingv2.HorizontalPodAutoscaler) {
	f, low, most := f.Child("spec"), ptr.Deref(h.Spec.MinReplicas, 1), h.Spec.MaxReplicas
	f.Reject("minReplicas", low < 0, low, "must be greater than or equal to 0")
	f.Reject("maxReplicas", most < 0, most, "must be greater than or equal to 1")
	f.Reject("maxReplicas", most < low, most, "must be greater than or equal to `minReplicas`")
	target := h.Spec.ScaleTargetRef
	f.Require("scaleTargetRef.kind", target.Kind != "", "")
	f.Require("scaleTargetRef.name", target.Name != "", "")
	if gv, err := schema.ParseGroupVersion(target.APIVersion); err != nil {
		f.Reject("scaleTargetRef.apiVersion", true, target.APIVersion, err.Error())
	} else {
		f.Reject("scaleTargetRef.apiVersion", gv.Group == "", target.APIVersion, "apiVersion must specify API group")
	}
	f.Forbid("metrics", low == 0 && !slices.ContainsFunc(h.Spec.Metrics, countsWithoutPods),
		"must specify at least one Object or External metric to support scaling to zero replicas")
	f.Require("maxReplicas", most != 0, "")
}

// countsWithoutPods reports whether a metric has a value while there is no pod to measure.
func countsWithoutPods(m autoscalingv2.MetricSpec) bool {
	return m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
}

func autoscalerRow(h *autoscalingv2.HorizontalPodAutoscaler) []cell {
	low, doc := "<unset>", autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()
	if h.Spec.MinReplicas != nil {
		low = fmt.Sprint(*h.Spec.MinReplicas)
	}
	return []cell{
		column("Reference", "string", doc["scaleTargetRef"], h.Spec.ScaleTargetRef.Kind+"/"+h.Spec.ScaleTargetRef.Name),
		column("Targets", "string", doc["metrics"], autoscalerTargets(h)),
		column("MinPods", "string", doc["minReplicas"], low),
		column("MaxPods", "string", doc["maxReplicas"], int64(h.Spec.MaxReplicas)),
		column("Replicas", "string", autoscalingv2.HorizontalPodAutoscalerStatus{}.SwaggerDoc()["currentReplicas"],
			int64(h.Status.CurrentReplicas)),
	}
}

// autoscalerTargets prints the first two metrics as "current/target".
func autoscalerTargets(h *autoscalingv2.HorizontalPodAutoscaler) string {
	const shown = 2
	var list []string
	for i := range h.Spec.Metrics {
		var status autoscalingv2.MetricStatus
		if i < len(h.Status.CurrentMetrics) {
			status = h.Status.CurrentMetrics[i]
		}
		list = append(list, metricTarget(&h.Spec.Metrics[i], &status))
	}
	switch n := len(list); {
	case n == 0:
		return "<none>"
	case n > shown:
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:shown], ", "), n-shown)
	default:
		return strings.Join(list, ", ")
	}
}

func metricTarget(m *autoscalingv2.MetricSpec, s *autoscalingv2.MetricStatus) string {
	switch {
	case m.External != nil:
		return averageOrValue(m.External.Target, ptr.Deref(s.External, autoscalingv2.ExternalMetricStatus{}).Current)
	case m.Object != nil:
		return averageOrValue(m.Object.Target, ptr.Deref(s.Object, autoscalingv2.ObjectMetricStatus{}).Current)
	case m.Pods != nil:
		current := ptr.Deref(s.Pods, autoscalingv2.PodsMetricStatus{}).Current
		return quantity(current.AverageValue) + "/" + quantity(m.Pods.Target.AverageValue)
	case m.Resource != nil:
		current := ptr.Deref(s.Resource, autoscalingv2.ResourceMetricStatus{}).Current
		return m.Resource.Name.String() + ": " + averageOrUtilization(m.Resource.Target, current)
	case m.ContainerResource != nil:
		current := ptr.Deref(s.ContainerResource, autoscalingv2.ContainerResourceMetricStatus{}).Current
		return m.ContainerResource.Name.String() + ": " + averageOrUtilization(m.ContainerResource.Target, current)
	}
	return "<unknown type>"
}

func averageOrValue(target autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return quantity(current.AverageValue) + "/" + target.AverageValue.String() + " (avg)"
	}
	return quantity(current.Value) + "/" + quantity(target.Value)
}

func averageOrUtilization(target autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return quantity(current.AverageValue) + "/" + target.AverageValue.String()
	}
	percent := func(p *int32, missing string) string {
		if p == nil {
			return missing
		}
		return fmt.Sprintf("%d%%", *p)
	}
	return percent(current.AverageUtilization, "<unknown>") + "/" + percent(target.AverageUtilization, "<auto>")
}

func quantity(q *resource.Quantity) string {
	if q == nil {
		return "<unknown>"
	}
	return q.String()
}
