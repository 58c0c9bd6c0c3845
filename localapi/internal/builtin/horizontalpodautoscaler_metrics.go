package builtin

import (
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// metricFields are the fields of each kind of metric: their names in autoscaling/v1, which has them side by side, and
// their paths in autoscaling/v2. A metric's status has "current" where its specification has "target".
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/autoscaling/v1/conversion.go, for the whole file.
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
