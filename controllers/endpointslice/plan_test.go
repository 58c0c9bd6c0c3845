package endpointslice

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type existing = []*discoveryv1.EndpointSlice

// At most three endpoints go into a slice here. Each row has the expected writes, in order.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler_test.go, for most of the cases
func TestPlan(t *testing.T) {
	web, renamed := service(), service(func(s *corev1.Service) { s.Labels = map[string]string{"team": "b"} })
	byName := service(ports(servicePort("http", intstr.FromString("http"))))
	pods := func(n ...int) (list []*corev1.Pod) {
		for _, i := range n {
			list = append(list, pod(i))
		}
		return list
	}
	noPorts := func(s *discoveryv1.EndpointSlice) { s.Ports = nil }
	ipv6 := func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeIPv6 }
	for _, tt := range []struct {
		name   string
		svc    *corev1.Service
		pods   []*corev1.Pod
		slices existing
		want   string
	}{
		{"first", web, pods(1, 2), nil, "create IPv4 :8080 p1 p2"},
		{"more than one slice holds", web, pods(1, 2, 3, 4), nil, "create IPv4 :8080 p1 p2 p3\ncreate IPv4 :8080 p4"},
		{"nothing to do", web, pods(1, 2), existing{slice(web, "s", pods(2, 1))}, ""},
		{"nobody: a placeholder", web, nil, nil, "create IPv4"},
		{"the placeholder stays", web, nil, existing{slice(web, "s", nil)}, ""},
		{"one placeholder is enough", web, nil, existing{slice(web, "s", nil), slice(web, "t", nil)}, "delete t"},
		{"a placeholder with other labels", renamed, nil, existing{slice(web, "s", nil)}, "update s IPv4"},
		{
			"a placeholder with the wrong headless label", web, nil,
			existing{
				slice(web, "s", nil, func(s *discoveryv1.EndpointSlice) { s.Labels[corev1.IsHeadlessService] = "" }),
			},
			"update s IPv4",
		},
		{
			"the placeholder of an earlier Service", web, nil,
			existing{slice(web, "s", nil, foreign)},
			"create IPv4\ndelete s",
		},
		{"the placeholder is filled", web, pods(1), existing{slice(web, "s", nil)}, "update s IPv4 :8080 p1"},
		{"the last one leaves", web, nil, existing{slice(web, "s", pods(1))}, "update s IPv4"},
		{
			"nothing but a pod without the port", byName,
			podList(1, 1, func(p *corev1.Pod) { p.Spec.Containers[0].Ports = nil }), nil, "create IPv4 p1",
		},

		// Packing.
		{
			"added to a slice with room", web, pods(1, 2),
			existing{slice(web, "s", pods(1))},
			"update s IPv4 :8080 p1 p2",
		},
		{
			"the fullest with room", web, pods(1, 2, 3, 4),
			existing{slice(web, "s", pods(1)), slice(web, "t", pods(2, 3))},
			"update t IPv4 :8080 p2 p3 p4",
		},
		{
			"what is written anyway is filled first", web, pods(1, 2, 3, 4),
			existing{slice(web, "s", pods(1, 9)), slice(web, "t", pods(2, 3))},
			"update s IPv4 :8080 p1 p4",
		},
		{
			"two writes rather than a move", web, pods(1, 2, 3, 4, 5, 6),
			existing{slice(web, "s", pods(1, 2)), slice(web, "t", pods(3, 4))},
			"create IPv4 :8080 p5 p6",
		},
		{
			"a full one is left alone", web, pods(1, 2, 3, 4),
			existing{slice(web, "s", pods(1, 2, 3))},
			"create IPv4 :8080 p4",
		},
		{
			"too full for a smaller maximum: left alone", web, pods(1, 2, 3, 4),
			existing{slice(web, "s", pods(1, 2, 3, 4))},
			"",
		},
		{
			"an emptied slice goes", web, pods(1),
			existing{slice(web, "s", pods(1)), slice(web, "t", pods(2))},
			"delete t",
		},
		{
			"or is used again", web, pods(1, 2, 3, 4),
			existing{slice(web, "s", pods(1, 2, 3)), slice(web, "t", pods(9))},
			"update t IPv4 :8080 p4",
		},
		{"an endpoint twice", web, pods(1), existing{slice(web, "s", pods(1)), slice(web, "t", pods(1))}, "delete t"},

		// States of pods.
		{"not ready", web, podList(1, 1, unready), existing{slice(web, "s", pods(1))}, "update s IPv4 :8080 -p1"},
		{"on its way out", web, podList(1, 1, deleting), existing{slice(web, "s", pods(1))}, "update s IPv4 :8080 -p1"},
		{"published all the same", service(published), podList(1, 1, deleting, unready), nil, "create IPv4 :8080 p1"},
		{"ended", service(published), podList(1, 1, ended), nil, "create IPv4"},
		{
			"no address yet", web,
			podList(1, 1, func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }), nil, "create IPv4",
		},
		{"a node that is not known", web, podList(1, 1, lost), nil, "create IPv4"},
		{
			"a node that is not known, and its slice", web, podList(1, 1, lost),
			existing{slice(web, "s", pods(1))},
			"update s IPv4",
		},
		{"a node that is not known, published", service(published), podList(1, 1, lost), nil, "create IPv4 :8080 p1"},
		{
			"made anew under the same name and address", web, podList(1, 1, func(p *corev1.Pod) { p.UID = "new" }),
			existing{slice(web, "s", pods(1))},
			"update s IPv4 :8080 p1",
		},

		// Ports.
		{
			"the ports change", web, pods(1),
			existing{slice(service(ports(servicePort("http", intstr.FromInt32(9)))), "s", pods(1))},
			"update s IPv4 :8080 p1",
		},
		{
			"a named port has two numbers", byName,
			[]*corev1.Pod{pod(1), pod(2, named(9090))},
			nil,
			"create IPv4 :8080 p1\ncreate IPv4 :9090 p2",
		},
		{
			"a group of ports goes", byName, pods(1, 2),
			existing{slice(byName, "s", pods(1)), slice(byName, "t", podList(2, 2, named(9090)))},
			"update s IPv4 :8080 p1 p2\ndelete t",
		},
		{"headless without ports", service(headless, ports()), pods(1), nil, "create IPv4 p1"},
		{
			"ports null or empty are the same", service(headless, ports()), pods(1),
			existing{slice(service(headless, ports()), "s", pods(1), noPorts)},
			"",
		},

		// Labels and owners.
		{
			"labels of the Service change", renamed, pods(1),
			existing{slice(web, "s", pods(1))},
			"update s IPv4 :8080 p1",
		},
		{"the headless label alone is no reason", service(headless), pods(1), existing{slice(web, "s", pods(1))}, ""},
		{
			"slices of an earlier Service", web, pods(1),
			existing{slice(web, "s", pods(1), foreign)},
			"create IPv4 :8080 p1\ndelete s",
		},

		// Families.
		{"dual stack", service(dual), pods(1), nil, "create IPv4 :8080 p1\ncreate IPv6 :8080 p1"},
		{
			"dual stack, a pod with one address", service(dual),
			podList(1, 1, func(p *corev1.Pod) { p.Status.PodIPs = p.Status.PodIPs[:1] }), nil,
			"create IPv4 :8080 p1\ncreate IPv6",
		},
		{
			"no longer dual stack", web, pods(1),
			existing{slice(web, "s", pods(1)), slice(web, "t", pods(1), ipv6)},
			"delete t",
		},

		// A Service that is being deleted.
		{"no creates", service(leaving), pods(1, 2, 3, 4), existing{slice(web, "s", pods(1, 2))}, ""},
		{
			"but updates", service(leaving), pods(1, 2, 3),
			existing{slice(web, "s", pods(1, 2))},
			"update s IPv4 :8080 p1 p2 p3",
		},
	} {
		o := seen(tt.svc, tt.pods, tt.slices...)
		if got := plan(o).writes(); got != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", tt.name, got, tt.want)
		}
	}
}

// What a new slice looks like, beyond its endpoints.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, newEndpointSlice
func TestNewSlice(t *testing.T) {
	svc := service(headless, func(s *corev1.Service) {
		s.Labels = map[string]string{
			"team": "a", discoveryv1.LabelManagedBy: "somebody",
			discoveryv1.LabelServiceName: "other",
		}
	})
	o := seen(svc, podList(1, 1))
	o.trigger = t0.Add(1500 * time.Millisecond)
	got := plan(o).batches[0].Create[0]
	wantLabels := map[string]string{
		"team": "a", discoveryv1.LabelServiceName: "web",
		discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", corev1.IsHeadlessService: "",
	}
	if len(got.Labels) != len(wantLabels) {
		t.Errorf("labels %v", got.Labels)
	}
	for key, value := range wantLabels {
		if v, found := got.Labels[key]; !found || v != value {
			t.Errorf("label %s is %q", key, v)
		}
	}
	if got.GenerateName != "web-" || got.Name != "" || got.Namespace != "ns" {
		t.Errorf("name %q, generated from %q, in %q", got.Name, got.GenerateName, got.Namespace)
	}
	if owner := metav1.GetControllerOf(got); owner == nil || owner.UID != "svc-uid" || owner.APIVersion != "v1" ||
		owner.Kind != "Service" || !*owner.BlockOwnerDeletion {
		t.Errorf("owner %+v", got.OwnerReferences)
	}
	if at := got.Annotations[corev1.EndpointsLastChangeTriggerTime]; at != "2026-01-01T00:00:01.5Z" {
		t.Errorf("trigger time %q", at)
	}
}

// Written slices get the trigger time, or lose it if none is known. It is never the reason to write.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, addTriggerTimeAnnotation
func TestTriggerTime(t *testing.T) {
	svc, annotated := service(), func(s *discoveryv1.EndpointSlice) {
		s.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2020-01-01T00:00:00Z", "not": "ours"}
	}
	o := seen(svc, podList(1, 2), slice(svc, "s", podList(1, 1), annotated))
	if got := plan(o).batches[0].Update[0].Annotations; len(got) != 1 || got["not"] != "ours" {
		t.Errorf("annotations %v", got)
	}
	o.trigger = t0
	if got := plan(
		o,
	).batches[0].Update[0].Annotations; got[corev1.EndpointsLastChangeTriggerTime] != "2026-01-01T00:00:00Z" {
		t.Errorf("annotations %v", got)
	}
	o.pods = podList(1, 1)
	if got := plan(o).writes(); got != "" {
		t.Errorf("writes %q", got)
	}
	if cached := o.slices[0].Annotations[corev1.EndpointsLastChangeTriggerTime]; cached != "2020-01-01T00:00:00Z" {
		t.Errorf("the cached slice was changed: %q", cached)
	}
}

// A rewritten slice keeps what does not belong to the controller, even where it takes over another slice's content. It
// keeps its resource version, so that it does not overwrite what the cache has not shown.
func TestRewrittenKeepsTheRest(t *testing.T) {
	svc := service()
	s := slice(svc, "s", podList(9, 9), func(s *discoveryv1.EndpointSlice) {
		s.Annotations, s.Finalizers = map[string]string{"not": "ours"}, []string{"example.com/hold"}
	})
	for _, svc := range []*corev1.Service{svc, service(ports(servicePort("http", intstr.FromInt32(9))))} {
		got := plan(seen(svc, podList(1, 1), s)).batches[0].Update[0]
		if got.Name != "s" || got.ResourceVersion != "1" || got.UID != "s" || got.Annotations["not"] != "ours" ||
			!slices.Equal(got.Finalizers, s.Finalizers) {
			t.Errorf("metadata %+v", got.ObjectMeta)
		}
	}
}

// Pods on an unknown node are left out, and reported once, so that the Service is retried.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go, reconcileByAddressType
func TestMissingNodes(t *testing.T) {
	got := plan(seen(service(dual), append(podList(1, 1), pod(2, lost))))
	if len(got.missingNodes) != 1 || got.missingNodes[0].Name != "p2" {
		t.Errorf("missing nodes of %v", got.missingNodes)
	}
	if want := "create IPv4 :8080 p1\ncreate IPv6 :8080 p1"; got.writes() != want {
		t.Errorf("writes %q", got.writes())
	}
	if got := plan(seen(service(published), podList(2, 2, lost))); len(got.missingNodes) != 0 {
		t.Errorf("missing nodes of %v", got.missingNodes)
	}
}

func TestSkippedPorts(t *testing.T) {
	svc := service(
		ports(servicePort("http", intstr.FromString("http")), servicePort("admin", intstr.FromString("admin"))),
	)
	got := plan(seen(svc, podList(1, 1)))
	if len(got.skipped) != 1 || got.skipped[0].port != "admin" || got.skipped[0].pod.Name != "p1" {
		t.Errorf("skipped %+v", got.skipped)
	}
	if want := "create IPv4 :8080 p1"; got.writes() != want {
		t.Errorf("writes %q", got.writes())
	}
}
