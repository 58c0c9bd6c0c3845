package endpoints

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// t0 is when every Service of these tests was created.
var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// service returns ns/web, with a cluster IP, port http 80 → 8080 and selector app=web, as the API server would default
// it.
func service(change ...func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", UID: "svc-uid", ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(t0), Labels: map[string]string{"team": "a"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.1",
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Selector:   map[string]string{"app": "web"},
			Ports:      []corev1.ServicePort{servicePort("http", 80, intstr.FromInt32(8080))},
		},
	}
	for _, f := range change {
		f(svc)
	}
	return svc
}

func servicePort(name string, port int32, target intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, TargetPort: target, Protocol: corev1.ProtocolTCP}
}

func headless(svc *corev1.Service) { svc.Spec.ClusterIP = corev1.ClusterIPNone }

// pod returns the i-th pod of app=web: ready, at 10.0.0.i on node-i.
func pod(i int, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)),
			ResourceVersion: fmt.Sprint(10 + i), Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", i),
			Containers: []corev1.Container{{Name: "main", Ports: []corev1.ContainerPort{
				{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
				{Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP},
			}}},
		},
		Status: corev1.PodStatus{
			Phase:  corev1.PodRunning,
			PodIP:  fmt.Sprintf("10.0.%d.%d", i/250, i%250+1),
			PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)}},
			Conditions: []corev1.PodCondition{
				{
					Type: corev1.PodReady, Status: corev1.ConditionTrue,
					LastTransitionTime: metav1.NewTime(t0.Add(time.Duration(i) * time.Minute)),
				},
			},
		},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func unready(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func deleting(p *corev1.Pod) {
	p.DeletionTimestamp = ptr.To(metav1.NewTime(t0.Add(time.Hour)))
}

func withIPs(ips ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.PodIP, p.Status.PodIPs = "", nil
		for _, ip := range ips {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
		}
		if len(ips) > 0 {
			p.Status.PodIP = ips[0]
		}
	}
}

// address returns what Endpoints contain for the i-th pod.
func address(i int, change ...func(*corev1.EndpointAddress)) corev1.EndpointAddress {
	p := pod(i)
	a := corev1.EndpointAddress{
		IP: p.Status.PodIP, NodeName: &p.Spec.NodeName,
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: p.Name, UID: p.UID},
	}
	for _, f := range change {
		f(&a)
	}
	return a
}

func atIP(ip string) func(*corev1.EndpointAddress) {
	return func(a *corev1.EndpointAddress) { a.IP = ip }
}

func addresses(numbers ...int) []corev1.EndpointAddress {
	var list []corev1.EndpointAddress
	for _, i := range numbers {
		list = append(list, address(i))
	}
	return list
}

func tcp(name string, number int32) corev1.EndpointPort {
	return corev1.EndpointPort{Name: name, Port: number, Protocol: corev1.ProtocolTCP}
}

var http = []corev1.EndpointPort{tcp("http", 8080)}
