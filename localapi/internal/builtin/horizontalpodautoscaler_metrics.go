package builtin

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The metrics of autoscaling/v2 in the types of autoscaling/v1, and back.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/autoscaling/v1/conversion.go.

func metricV1(m *autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
	out := autoscalingv1.MetricSpec{Type: autoscalingv1.MetricSourceType(m.Type)}
	if s := m.Object; s != nil {
		out.Object = &autoscalingv1.ObjectMetricSource{
			Target: autoscalingv1.CrossVersionObjectReference(s.DescribedObject), MetricName: s.Metric.Name,
			TargetValue: ptr.Deref(s.Target.Value, resource.Quantity{}), Selector: s.Metric.Selector,
			AverageValue: s.Target.AverageValue,
		}
	}
	if s := m.Pods; s != nil {
		out.Pods = &autoscalingv1.PodsMetricSource{
			MetricName: s.Metric.Name, TargetAverageValue: ptr.Deref(s.Target.AverageValue, resource.Quantity{}),
			Selector: s.Metric.Selector,
		}
	}
	if s := m.Resource; s != nil {
		out.Resource = &autoscalingv1.ResourceMetricSource{
			Name: s.Name, TargetAverageUtilization: s.Target.AverageUtilization,
			TargetAverageValue: s.Target.AverageValue,
		}
	}
	if s := m.ContainerResource; s != nil {
		out.ContainerResource = &autoscalingv1.ContainerResourceMetricSource{
			Name: s.Name, TargetAverageUtilization: s.Target.AverageUtilization,
			TargetAverageValue: s.Target.AverageValue,
			Container:          s.Container,
		}
	}
	if s := m.External; s != nil {
		out.External = &autoscalingv1.ExternalMetricSource{
			MetricName: s.Metric.Name, MetricSelector: s.Metric.Selector, TargetValue: s.Target.Value,
			TargetAverageValue: s.Target.AverageValue,
		}
	}
	return out
}

func metricV2(m *autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
	out := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(m.Type)}
	if s := m.Object; s != nil {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: &s.TargetValue}
		if s.AverageValue != nil {
			target = autoscalingv2.MetricTarget{
				Type:         autoscalingv2.AverageValueMetricType,
				AverageValue: s.AverageValue,
			}
			if !s.TargetValue.IsZero() {
				target.Value = &s.TargetValue
			}
		}
		out.Object = &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(s.Target), Target: target,
			Metric: metricID(s.MetricName, s.Selector),
		}
	}
	if s := m.Pods; s != nil {
		out.Pods = &autoscalingv2.PodsMetricSource{
			Metric: metricID(s.MetricName, s.Selector),
			Target: autoscalingv2.MetricTarget{
				Type:         autoscalingv2.AverageValueMetricType,
				AverageValue: &s.TargetAverageValue,
			},
		}
	}
	if s := m.Resource; s != nil {
		out.Resource = &autoscalingv2.ResourceMetricSource{
			Name:   s.Name,
			Target: utilization(s.TargetAverageUtilization, s.TargetAverageValue),
		}
	}
	if s := m.ContainerResource; s != nil {
		out.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{
			Name: s.Name, Target: utilization(s.TargetAverageUtilization, s.TargetAverageValue), Container: s.Container,
		}
	}
	if s := m.External; s != nil {
		target := autoscalingv2.MetricTarget{
			Type: autoscalingv2.AverageValueMetricType, Value: s.TargetValue,
			AverageValue: s.TargetAverageValue,
		}
		if s.TargetValue != nil {
			target.Type = autoscalingv2.ValueMetricType
		}
		out.External = &autoscalingv2.ExternalMetricSource{
			Metric: metricID(s.MetricName, s.MetricSelector),
			Target: target,
		}
	}
	return out
}

func metricID(name string, selector *metav1.LabelSelector) autoscalingv2.MetricIdentifier {
	return autoscalingv2.MetricIdentifier{Name: name, Selector: selector}
}

func utilization(percent *int32, average *resource.Quantity) autoscalingv2.MetricTarget {
	target := autoscalingv2.MetricTarget{
		Type: autoscalingv2.UtilizationMetricType, AverageUtilization: percent,
		AverageValue: average,
	}
	if percent == nil {
		target.Type = autoscalingv2.AverageValueMetricType
	}
	return target
}

func metricStatusV1(m *autoscalingv2.MetricStatus) autoscalingv1.MetricStatus {
	out := autoscalingv1.MetricStatus{Type: autoscalingv1.MetricSourceType(m.Type)}
	or0 := func(q *resource.Quantity) resource.Quantity { return ptr.Deref(q, resource.Quantity{}) }
	if s := m.Object; s != nil {
		out.Object = &autoscalingv1.ObjectMetricStatus{
			Target: autoscalingv1.CrossVersionObjectReference(s.DescribedObject), MetricName: s.Metric.Name,
			CurrentValue: or0(s.Current.Value), Selector: s.Metric.Selector, AverageValue: s.Current.AverageValue,
		}
	}
	if s := m.Pods; s != nil {
		out.Pods = &autoscalingv1.PodsMetricStatus{
			MetricName: s.Metric.Name, CurrentAverageValue: or0(s.Current.AverageValue), Selector: s.Metric.Selector,
		}
	}
	if s := m.Resource; s != nil {
		out.Resource = &autoscalingv1.ResourceMetricStatus{
			Name: s.Name, CurrentAverageUtilization: s.Current.AverageUtilization,
			CurrentAverageValue: or0(s.Current.AverageValue),
		}
	}
	if s := m.ContainerResource; s != nil {
		out.ContainerResource = &autoscalingv1.ContainerResourceMetricStatus{
			Name: s.Name, Container: s.Container,
			CurrentAverageUtilization: s.Current.AverageUtilization, CurrentAverageValue: or0(s.Current.AverageValue),
		}
	}
	if s := m.External; s != nil {
		out.External = &autoscalingv1.ExternalMetricStatus{
			MetricName: s.Metric.Name, MetricSelector: s.Metric.Selector,
			CurrentValue: or0(s.Current.Value), CurrentAverageValue: s.Current.AverageValue,
		}
	}
	return out
}

func metricStatusV2(m *autoscalingv1.MetricStatus) autoscalingv2.MetricStatus {
	out := autoscalingv2.MetricStatus{Type: autoscalingv2.MetricSourceType(m.Type)}
	if s := m.Object; s != nil {
		out.Object = &autoscalingv2.ObjectMetricStatus{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(s.Target),
			Metric:          metricID(s.MetricName, s.Selector),
			Current:         autoscalingv2.MetricValueStatus{Value: &s.CurrentValue, AverageValue: s.AverageValue},
		}
	}
	if s := m.Pods; s != nil {
		out.Pods = &autoscalingv2.PodsMetricStatus{
			Metric:  metricID(s.MetricName, s.Selector),
			Current: autoscalingv2.MetricValueStatus{AverageValue: &s.CurrentAverageValue},
		}
	}
	if s := m.Resource; s != nil {
		out.Resource = &autoscalingv2.ResourceMetricStatus{Name: s.Name, Current: autoscalingv2.MetricValueStatus{
			AverageValue: &s.CurrentAverageValue, AverageUtilization: s.CurrentAverageUtilization,
		}}
	}
	if s := m.ContainerResource; s != nil {
		out.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{
			Name: s.Name, Container: s.Container, Current: autoscalingv2.MetricValueStatus{
				AverageValue: &s.CurrentAverageValue, AverageUtilization: s.CurrentAverageUtilization,
			},
		}
	}
	if s := m.External; s != nil {
		out.External = &autoscalingv2.ExternalMetricStatus{
			Metric:  metricID(s.MetricName, s.MetricSelector),
			Current: autoscalingv2.MetricValueStatus{Value: &s.CurrentValue, AverageValue: s.CurrentAverageValue},
		}
	}
	return out
}
