package endpointslice

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/endpointslice/internal/hints"
)

// t0 is when every Service of these tests was created.
var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// service returns ns/web, with a cluster IP, port http 80 → 8080 and selector app=web, as the API server would default
// it.
func service(change ...func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", UID: "svc-uid",
			CreationTimestamp: metav1.NewTime(t0), Labels: map[string]string{"team": "a"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.1",
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Selector:   map[string]string{"app": "web"},
			Ports:      []corev1.ServicePort{servicePort("http", intstr.FromInt32(8080))},
		},
	}
	for _, f := range change {
		f(svc)
	}
	return svc
}

func servicePort(name string, target intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: 80, TargetPort: target, Protocol: corev1.ProtocolTCP}
}

func headless(svc *corev1.Service)  { svc.Spec.ClusterIP = corev1.ClusterIPNone }
func published(svc *corev1.Service) { svc.Spec.PublishNotReadyAddresses = true }
func leaving(svc *corev1.Service)   { svc.DeletionTimestamp = ptr.To(metav1.NewTime(t0)) }
func topology(svc *corev1.Service) {
	svc.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
}

func dual(svc *corev1.Service) {
	svc.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
}

func distribution(value string) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Spec.TrafficDistribution = &value }
}

func ports(list ...corev1.ServicePort) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Spec.Ports = list }
}

// pod returns the i-th pod of app=web: ready, at 10.0.0.i and fd00::i, on node n<i>.
func pod(i int, change ...func(*corev1.Pod)) *corev1.Pod {
	ips := []corev1.PodIP{{IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250)}, {IP: fmt.Sprintf("fd00::%x", i)}}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)),
			Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("n%d", i),
			Containers: []corev1.Container{
				{
					Name:  "main",
					Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
				},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ips[0].IP, PodIPs: ips,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func unready(p *corev1.Pod)  { p.Status.Conditions[0].Status = corev1.ConditionFalse }
func ended(p *corev1.Pod)    { p.Status.Phase = corev1.PodFailed }
func deleting(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(t0)) }
func lost(p *corev1.Pod)     { p.Spec.NodeName = "lost" }

// named gives the port named http another number.
func named(number int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].ContainerPort = number }
}

func podList(from, to int, change ...func(*corev1.Pod)) []*corev1.Pod {
	var list []*corev1.Pod
	for i := from; i <= to; i++ {
		list = append(list, pod(i, change...))
	}
	return list
}

// node returns the i-th node: ready, with one CPU, in zone a, b or c in turn.
func node(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("n%d", i),
			Labels: map[string]string{corev1.LabelTopologyZone: string(rune('a' + i%3))},
		},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// seen returns what the controller observes: these pods, each with its node unless that is "lost", and these slices.
func seen(svc *corev1.Service, pods []*corev1.Pod, list ...*discoveryv1.EndpointSlice) observed {
	o := observed{service: svc, pods: pods, slices: list, nodes: map[string]*corev1.Node{}, maxEndpoints: 3}
	for _, p := range pods {
		var i int
		if _, err := fmt.Sscanf(p.Spec.NodeName, "n%d", &i); err == nil {
			o.nodes[p.Spec.NodeName] = node(i)
		}
	}
	if hints.WantsTopology(svc) {
		o.shares = hints.ZoneShares(slices.Values([]*corev1.Node{node(0), node(1), node(2)}))
	}
	return o
}

// slice returns an existing slice, as the controller would have made it for these pods.
func slice(svc *corev1.Service, name string, pods []*corev1.Pod,
	change ...func(*discoveryv1.EndpointSlice),
) *discoveryv1.EndpointSlice {
	o := seen(svc, pods)
	o.maxEndpoints = maxPerSlice
	s := plan(o).batches[0].Create[0]
	s.Name, s.UID, s.ResourceVersion, s.Generation = name, types.UID(name), "1", 1
	for _, f := range change {
		f(s)
	}
	return s
}

// foreign changes the owner of a slice to an earlier Service of the same name.
func foreign(s *discoveryv1.EndpointSlice) { s.OwnerReferences[0].UID = "earlier" }

// describe returns "IPv4 :8080 p1 p2". Pods that are not ready have a dash in front; hints follow an @.
func describe(s *discoveryv1.EndpointSlice) string {
	words := []string{string(s.AddressType)}
	for _, p := range s.Ports {
		words = append(words, fmt.Sprintf(":%d", *p.Port))
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		word := e.TargetRef.Name
		if !hints.IsReady(e) {
			word = "-" + word
		}
		if e.Hints != nil {
			word += "@"
			for _, z := range e.Hints.ForZones {
				word += z.Name
			}
			for _, n := range e.Hints.ForNodes {
				word += n.Name
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// writes lists the writes of the plan in order.
func (c changes) writes() string {
	var lines []string
	for _, b := range c.batches {
		for _, s := range b.Create {
			lines = append(lines, "create "+describe(s))
		}
		for _, s := range b.Update {
			lines = append(lines, "update "+s.Name+" "+describe(s))
		}
		for _, s := range b.Remove {
			lines = append(lines, "delete "+s.Name)
		}
	}
	return strings.Join(lines, "\n")
}
