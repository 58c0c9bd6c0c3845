package differential

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// TestEndpointSlicesOfBoth: kube-controller-manager and flyball manager, each on an API server of its own, make the
// same EndpointSlices of the same dual-stack Service through a list of changes: names, versions and UIDs aside.
func TestEndpointSlicesOfBoth(t *testing.T) {
	sameSlices(t, sliceSteps(), "--controllers=endpointslice", "--max-endpoints-per-slice=3")
}

// sameSlices takes the steps on kube-controller-manager and on flyball manager, which have the same flags, and compares
// the EndpointSlices after each.
func sameSlices(t *testing.T, steps []sliceStep, controllers string, flags ...string) {
	t.Helper()
	real, err := upstream.Start(t.Context(), upstream.Options{
		Controllers: []string{strings.TrimPrefix(controllers, "--controllers=")}, ManagerArgs: flags, Log: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := real.Stop(); err != nil {
			t.Error(err)
		}
	})
	startManager(t, plane.Kubeconfig, append([]string{"--leader-elect=false", controllers}, flags...)...)
	ns := strings.ToLower(t.Name())
	sides := []*sliceSide{
		{t: t, ns: ns, client: kubernetes.NewForConfigOrDie(adminConfig(t, real))},
		{t: t, ns: ns, client: kubernetes.NewForConfigOrDie(adminConfig(t, plane))},
	}
	for _, s := range sides {
		_, err := s.client.CoreV1().Namespaces().Create(t.Context(), namespace(ns), metav1.CreateOptions{})
		s.must(err)
	}
	for _, step := range steps {
		for _, s := range sides {
			step.do(s)
		}
		var texts [2]string
		eventually(t, func() string {
			for i, s := range sides {
				texts[i] = s.text()
				if shown := step.shows == "" && texts[i] == "" ||
					step.shows != "" && strings.Contains(texts[i], step.shows); !shown {
					return fmt.Sprintf("%s: does not show %q:\n%s", step.name, step.shows, texts[i])
				}
			}
			if texts[0] != texts[1] {
				return fmt.Sprintf("%s: theirs\n%s\nours\n%s", step.name, texts[0], texts[1])
			}
			return ""
		})
	}
}

type sliceStep struct {
	name string
	do   func(s *sliceSide)
	// shows is a part of the outcome that tells it from the one before. Empty: there are no slices.
	shows string
}

func sliceSteps() []sliceStep {
	return []sliceStep{
		{"a Service without pods", func(s *sliceSide) { s.begin() }, `"IPv6" [] {`},
		{"pods of one and of two families", func(s *sliceSide) {
			s.pod(1, "10.9.0.1", "fd00::1")
			s.pod(2, "10.9.0.2")
			s.pod(3, "10.9.0.3", "fd00::3")
		}, "fd00::3"},
		{"a second slice", func(s *sliceSide) { s.pod(4, "10.9.0.4", "fd00::4") }, "10.9.0.4"},
		{"one is not ready", func(s *sliceSide) {
			s.patchPod("p1", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, "status")
		}, `{"ready":false,"serving":false,"terminating":false}`},
		{"one is on its way out", func(s *sliceSide) {
			s.must(
				s.client.CoreV1().Pods(s.ns).Delete(s.t.Context(), "p3",
					metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](600)}),
			)
		}, `{"ready":false,"serving":true,"terminating":true}`},
		{"labels", func(s *sliceSide) { s.patchService(`{"metadata":{"labels":{"team":"b"}}}`) }, `"team":"b"`},
		{
			"hints", func(s *sliceSide) { s.patchService(`{"spec":{"trafficDistribution":"PreferSameNode"}}`) },
			"forNodes",
		},
		{"a named port", func(s *sliceSide) {
			s.patchService(
				`{"spec":{"ports":[{"name":"http","port":80,"targetPort":"http"},{"name":"more","port":81,"targetPort":8081,"appProtocol":"h2c"}]}}`,
			)
		}, "h2c"},
		{"one is gone", func(s *sliceSide) {
			s.must(s.client.CoreV1().Pods(s.ns).Delete(s.t.Context(), "p4", *metav1.NewDeleteOptions(0)))
			s.patchService(`{"metadata":{"labels":{"team":"c"}}}`)
		}, `"team":"c"`},
		{"a slice is edited", func(s *sliceSide) {
			list := s.list()
			_, err := s.client.DiscoveryV1().EndpointSlices(s.ns).Patch(s.t.Context(), list[0].Name,
				types.MergePatchType, []byte(`{"endpoints":[],"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{})
			s.must(err)
			time.Sleep(2 * time.Second) // until it is put right
		}, `"team":"c"`},
		{"one family", func(s *sliceSide) {
			s.patchService(`{"spec":{"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4"]}}`)
			s.patchService(`{"metadata":{"labels":{"team":"d"}}}`)
		}, `"team":"d"`},
	}
}

// sliceSide is one of the two API servers.
type sliceSide struct {
	t      *testing.T
	ns     string
	client kubernetes.Interface
}

func (s *sliceSide) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *sliceSide) begin() {
	s.t.Helper()
	ctx := s.t.Context()
	for _, zone := range []string{"a", "b"} {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:   "slices-" + zone,
				Labels: map[string]string{corev1.LabelTopologyZone: zone},
			},
		}
		_, err := s.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		s.must(err)
	}
	_, err := s.client.CoreV1().Services(s.ns).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"team": "a"}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyRequireDualStack),
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	s.must(err)
}

// pod makes the i-th pod, which is ready, and waits until its Service shows it, so that both sides get them one by one.
func (s *sliceSide) pod(i int, ips ...string) {
	s.t.Helper()
	name := fmt.Sprint("p", i)
	_, err := s.client.CoreV1().Pods(s.ns).Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName: []string{"slices-a", "slices-b"}[i%2],
			Containers: []corev1.Container{{
				Name: "c", Image: "nginx:1",
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: int32(8080 + i/4)}},
			}},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ips[0],
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	for _, ip := range ips {
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: ip})
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	s.must(err)
	s.patchPod(name, string(patch), "status")
	eventually(s.t, func() string {
		if text := s.text(); !strings.Contains(text, ips[len(ips)-1]) {
			return "no slice shows " + name + ":\n" + text
		}
		return ""
	})
}

func (s *sliceSide) patchPod(name, patch string, subresources ...string) {
	s.t.Helper()
	_, err := s.client.CoreV1().Pods(s.ns).Patch(s.t.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}, subresources...)
	s.must(err)
}

func (s *sliceSide) patchService(patch string) {
	s.t.Helper()
	_, err := s.client.CoreV1().Services(s.ns).Patch(s.t.Context(), "web", types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	s.must(err)
}

func (s *sliceSide) list() []discoveryv1.EndpointSlice {
	s.t.Helper()
	list, err := s.client.DiscoveryV1().EndpointSlices(s.ns).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	return list.Items
}

// generated is the length of what the API server appends to a prefix. It keeps the prefix, too, until an update without
// it: kube-controller-manager updates mirrored slices so.
const generated = 5

// text is the slices without what differs between two clusters, sorted.
func (s *sliceSide) text() string {
	s.t.Helper()
	var lines []string
	for _, s := range s.list() {
		var endpoints []string
		for _, e := range s.Endpoints {
			if e.TargetRef != nil {
				e.TargetRef.UID = ""
			}
			line, _ := json.Marshal(e)
			endpoints = append(endpoints, string(line))
		}
		slices.Sort(endpoints)
		for i := range s.OwnerReferences {
			s.OwnerReferences[i].UID = ""
		}
		delete(s.Annotations, corev1.EndpointsLastChangeTriggerTime)
		s.Ports = append([]discoveryv1.EndpointPort{}, s.Ports...)
		parts := []string{s.Name[:max(0, len(s.Name)-generated)]}
		for _, part := range []any{s.AddressType, s.Ports, s.Labels, s.Annotations, s.OwnerReferences} {
			text, _ := json.Marshal(part)
			parts = append(parts, string(text))
		}
		lines = append(lines, strings.Join(append([]string{strings.Join(parts, " ")}, endpoints...), "\n  "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
