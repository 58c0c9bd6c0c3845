package builtin

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/util/parsers/parsers_test.go; github.com/distribution/reference v0.6.0.
func TestPullPolicyFor(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0123456789abcdef", 4)
	for image, want := range map[string]corev1.PullPolicy{
		"nginx":                             corev1.PullAlways,
		"nginx:latest":                      corev1.PullAlways,
		"nginx:1.25":                        corev1.PullIfNotPresent,
		"library/nginx":                     corev1.PullAlways,
		"localhost:5000/nginx":              corev1.PullAlways,
		"localhost:5000/nginx:1":            corev1.PullIfNotPresent,
		"registry.k8s.io/a/b_c/d__e/f-g":    corev1.PullAlways,
		"[fd00::1]:5000/nginx":              corev1.PullAlways,
		"Registry.example.com/nginx":        corev1.PullAlways,
		"nginx" + digest:                    corev1.PullIfNotPresent,
		"nginx:1" + digest:                  corev1.PullIfNotPresent,
		"nginx:latest" + digest:             corev1.PullAlways,
		"":                                  corev1.PullIfNotPresent,
		"nginx:":                            corev1.PullIfNotPresent,
		" nginx":                            corev1.PullIfNotPresent,
		"Nginx":                             corev1.PullIfNotPresent,
		"example.com/Nginx":                 corev1.PullIfNotPresent,
		"nginx@sha256:short":                corev1.PullIfNotPresent,
		"nginx:" + strings.Repeat("x", 129): corev1.PullIfNotPresent,
	} {
		if got := pullPolicyFor(image); got != want {
			t.Errorf("pullPolicyFor(%q) = %s, want %s", image, got, want)
		}
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/helper/qos/qos.go ComputePodQOS.
func TestPodQOS(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{}
		if cpu != "" {
			l[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		return l
	}
	with := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	none, all := with(nil, nil), with(list("1", "1Gi"), list("1", "1Gi"))
	for name, test := range map[string]struct {
		init, regular []corev1.Container
		want          corev1.PodQOSClass
	}{
		"no containers":                 {nil, nil, corev1.PodQOSBestEffort},
		"nothing asked for":             {nil, []corev1.Container{none, none}, corev1.PodQOSBestEffort},
		"zero asked for":                {nil, []corev1.Container{with(list("0", "0"), nil)}, corev1.PodQOSBestEffort},
		"all limited to their requests": {[]corev1.Container{all}, []corev1.Container{all}, corev1.PodQOSGuaranteed},
		"equal in other words": {
			nil,
			[]corev1.Container{with(list("1000m", "1024Mi"), list("1", "1Gi"))},
			corev1.PodQOSGuaranteed,
		},
		"one container asks for nothing": {nil, []corev1.Container{all, none}, corev1.PodQOSBurstable},
		"an init container does":         {[]corev1.Container{none}, []corev1.Container{all}, corev1.PodQOSBurstable},
		"no memory limit": {
			nil,
			[]corev1.Container{with(list("1", ""), list("1", ""))},
			corev1.PodQOSBurstable,
		},
		"limit above request": {
			nil,
			[]corev1.Container{with(list("1", "1Gi"), list("2", "1Gi"))},
			corev1.PodQOSBurstable,
		},
		"request without a limit": {nil, []corev1.Container{with(list("1", ""), nil)}, corev1.PodQOSBurstable},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podQOS(&corev1.PodSpec{InitContainers: test.init, Containers: test.regular}); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	whole := corev1.PodSpec{Containers: []corev1.Container{none}, Resources: &all.Resources}
	if got := podQOS(&whole); got != corev1.PodQOSGuaranteed {
		t.Errorf("limits of the whole pod: got %s", got)
	}
}

// TestPodResources: what a pod states for itself as a whole is completed from what its containers state. peers/localapi
// compares the same pods with kube-apiserver.
func TestPodResources(t *testing.T) {
	const container = "{name: a, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 2, hugepages-2Mi: 4Mi}}}"
	for _, test := range []struct{ spec, want string }{
		{"{resources: {}, containers: [" + container + "]}", "{}"},
		{"{resources: {limits: {cpu: 4}}, containers: [{name: a}]}", "{limits: {cpu: 4}, requests: {cpu: 4}}"},
		{"{resources: {requests: {cpu: 3}}, containers: [" + container + "]}", "{requests: {cpu: 3, memory: 1Gi, " +
			"hugepages-2Mi: 4Mi}, limits: {cpu: 3, hugepages-2Mi: 4Mi}}"},
		{"{resources: {requests: {cpu: 1}}, containers: [" + container + ", {name: b}]}", "{requests: {cpu: 1, " +
			"memory: 1Gi, hugepages-2Mi: 4Mi}, limits: {hugepages-2Mi: 4Mi}}"},
		{
			"{resources: {requests: {hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: 2Mi}}, containers: [" +
				container + "]}",
			"{requests: {cpu: 1, memory: 1Gi, hugepages-2Mi: 2Mi}, limits: {cpu: 2, hugepages-2Mi: 2Mi}}",
		},
	} {
		var spec corev1.PodSpec
		var want corev1.ResourceRequirements
		err := errors.Join(yaml.Unmarshal([]byte(test.spec), &spec), yaml.Unmarshal([]byte(test.want), &want))
		if err != nil {
			t.Fatal(err)
		}
		defaultPodResources(&spec)
		if !equality.Semantic.DeepEqual(spec.Resources, &want) {
			t.Errorf("%s:\ngot  %v\nwant %v", test.spec, spec.Resources, want)
		}
	}
}
