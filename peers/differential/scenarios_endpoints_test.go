package differential

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// svc is the Service of most scenarios, changed by the given functions.
func svc(change ...func(*corev1.Service)) *corev1.Service {
	s := service("web")
	for _, f := range change {
		f(s)
	}
	return s
}

func headless(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }

func portless(s *corev1.Service) { s.Spec.Ports = nil }

func ports(all ...corev1.ServicePort) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Ports = all }
}

func toNamed(name, target string, protocol corev1.Protocol, port int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: port, Protocol: protocol, TargetPort: intstr.FromString(target)}
}

// member is a pod that the Service selects.
func member(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := barePod(name, map[string]string{"app": "web"})
	for _, f := range change {
		f(p)
	}
	return p
}

func listening(all ...corev1.ContainerPort) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: "image:1", Ports: all}}
	}
}

func podNamed(name string) func(*unstructured.Unstructured) bool {
	return func(pod *unstructured.Unstructured) bool { return pod.GetName() == name }
}

// addresses reports a pod as running with these addresses, and ready.
func addresses(name string, ips ...string) step {
	return toPod(fmt.Sprintf("pod %s runs at %v", name, ips), podNamed(name),
		func(ctx context.Context, e *env, pod *unstructured.Unstructured) error {
			if err := startPod(ctx, e.side.client, pod, ips[0]); err != nil {
				return err
			}
			var all []corev1.PodIP
			for _, ip := range ips {
				all = append(all, corev1.PodIP{IP: ip})
			}
			return patchStatus(ctx, e.side.client, pod, corev1.PodStatus{PodIP: ips[0], PodIPs: all})
		})
}

// endpointsScenarios are about Services and what belongs to them.
func endpointsScenarios() []scenario {
	three := []step{create(member("a"), member("b"), member("c")), pods(all)}
	after := func(first []step, then ...step) []step { return append(append([]step(nil), first...), then...) }
	unready := func(name string) step { return toPod(name+" is not ready", podNamed(name), becomes(false)) }
	ready := func(name string) step { return toPod(name+" is ready", podNamed(name), becomes(true)) }
	edit := func(document string) step { return patch("Service", "web", document) }
	return []scenario{
		{
			name: "ep-ready-and-not",
			steps: []step{
				create(svc()), create(member("a"), member("b")), pods(all), unready("a"), unready("b"),
				ready("a"), ready("b"),
			},
		},
		{name: "ep-service-comes-later", steps: after(three, unready("b"), create(svc()))},
		{
			name: "ep-publish-not-ready",
			steps: after(three, unready("b"),
				create(svc(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })),
				patch("Pod", "c", `{"metadata":{"finalizers":["`+held+`"]}}`), remove("Pod", "c"),
				edit(`{"spec":{"publishNotReadyAddresses":false}}`)),
		},
		{name: "ep-headless", steps: after(three, create(svc(headless)))},
		{name: "ep-headless-without-ports", steps: after(three, unready("a"), create(svc(headless, portless)))},
		{
			name:  "ep-without-selector",
			steps: after(three, create(svc(func(s *corev1.Service) { s.Spec.Selector = nil }))),
		},
		{
			name: "ep-selector-removed",
			steps: after(three, create(svc()), edit(`{"spec":{"selector":null}}`), remove("Pod", "a"), pods(all),
				edit(`{"spec":{"selector":{"app":"web"}}}`)),
		},
		{
			name: "ep-selector-changed",
			steps: after(three, create(svc()), edit(`{"spec":{"selector":{"app":"other"}}}`),
				edit(`{"spec":{"selector":{"app":"web"}}}`)),
		},
		{name: "ep-named-ports", steps: []step{
			create(
				svc(
					ports(toNamed("web", "http", corev1.ProtocolTCP, 80),
						toNamed("dns", "dns", corev1.ProtocolUDP, 53)),
				),
			),
			create(member("a",
				listening(corev1.ContainerPort{Name: "http", ContainerPort: 8080},
					corev1.ContainerPort{Name: "dns", ContainerPort: 5353, Protocol: corev1.ProtocolUDP})),
				member("b", listening(corev1.ContainerPort{Name: "http", ContainerPort: 9090})),
				member("c", listening(corev1.ContainerPort{Name: "dns", ContainerPort: 5353}))), // TCP: not the one
			pods(all), unready("a"),
		}},
		{name: "ep-sidecar-port", steps: []step{
			create(svc(ports(toNamed("web", "side", corev1.ProtocolTCP, 80)))),
			create(member("a", func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{
					Name: "side", Image: "image:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
					Ports: []corev1.ContainerPort{{Name: "side", ContainerPort: 15001}},
				}}
			}), member("b")), pods(all),
		}},
		{
			name: "ep-ports-changed",
			steps: after(three, create(svc()),
				edit(
					`{"spec":{"ports":[{"name":"http","port":80,"targetPort":8081},{"name":"more","port":81,"appProtocol":"kubernetes.io/h2c"}]}}`,
				),
				edit(`{"spec":{"ports":[{"$patch":"delete","port":80}]}}`)),
		},
		{
			name: "ep-external-name",
			steps: after(three, create(svc()),
				edit(
					`{"spec":{"type":"ExternalName","externalName":"example.org","clusterIP":null,"clusterIPs":null,"ports":null}}`,
				), remove("Pod", "a"), pods(all)),
		},
		{name: "ep-service-deleted", steps: after(three, create(svc()), remove("Service", "web"), create(svc()))},
		{name: "ep-deleted-by-hand", steps: after(three, create(svc()), remove("Endpoints", "web"))},
		{
			name:  "ep-edited-by-hand",
			steps: after(three, create(svc()), patch("Endpoints", "web", `{"subsets":null}`), unready("a")),
		},
		{
			name: "ep-labelled-by-hand",
			steps: after(three, create(svc()),
				patch("Endpoints", "web", `{"metadata":{"labels":{"mine":"x"},"annotations":{"mine":"x"}}}`),
				unready("a")),
		},
		{
			name: "ep-service-labels",
			steps: after(three, create(svc(func(s *corev1.Service) { s.Labels = map[string]string{"tier": "front"} })),
				edit(`{"metadata":{"labels":{"tier":"back","more":"x"}}}`),
				edit(`{"metadata":{"labels":{"tier":null}}}`)),
		},
		//lint:ignore SA1019 Deprecated they are, and what this is about.
		{name: "ep-made-by-hand", steps: after(three, create(&corev1.Endpoints{
			ObjectMeta: metav1.ObjectMeta{
				Name: "web", Labels: map[string]string{"mine": "x"},
				Annotations: map[string]string{"mine": "x"},
			},
		}), create(svc()))},
		{
			name: "ep-pod-terminates",
			steps: after(three, create(svc()), patch("Pod", "a", `{"metadata":{"finalizers":["`+held+`"]}}`),
				remove("Pod", "a"), release(), pods(all)),
		},
		{
			name: "ep-pod-ends",
			steps: after(three, create(svc()), toPod("a fails", podNamed("a"), ended("Failed")),
				toPod("b succeeds", podNamed("b"), ended("Succeeded"))),
		},
		{
			name: "ep-hostnames",
			steps: []step{create(svc(headless),
				member("a", func(p *corev1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "a", "web" }),
				member("b", func(p *corev1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "b", "elsewhere" })), pods(all)},
		},
		{
			name: "ep-two-services",
			steps: after(three, create(svc(), service("other")),
				patch("Pod", "a", `{"metadata":{"labels":{"app":"other"}}}`),
				patch("Pod", "a", `{"metadata":{"labels":{"app":"web"}}}`)),
		},
		{name: "ep-six", steps: []step{
			create(svc(func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} })),
			create(member("a"), member("b")),
			addresses("a", "10.244.0.1", "fd00::1"), addresses("b", "10.244.0.2"),
		}},
		{name: "ep-dual", steps: []step{
			create(
				svc(func(s *corev1.Service) { s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack) }),
			), create(member("a"), member("b")),
			addresses("a", "10.244.0.1", "fd00::1"), addresses("b", "fd00::2"),
		}},
		{
			name: "ep-one-address-for-two",
			steps: []step{
				create(svc(), member("a"), member("b")), addresses("a", "10.244.0.1"),
				addresses("b", "10.244.0.1"), unready("a"),
			},
		},
		{
			name: "ep-host-network",
			steps: []step{
				create(svc(),
					member("a", func(p *corev1.Pod) { p.Spec.HostNetwork = true; p.Spec.Containers[0].Ports = nil })),
				pods(all),
			},
		},
		{
			name: "ep-of-a-rollout",
			steps: append([]step{create(svc())},
				running(web(3), image("web", "2"), pods(all), scale("web", 1), pods(all))...),
		},
	}
}

// truncatedScenario has more pods than Endpoints hold. It is slow.
func truncatedScenario() scenario {
	var first, last []step
	for i := range 1003 {
		name := fmt.Sprintf("p%04d", i)
		first = append(first, create(member(name)))
		last = append(last, addresses(name, fmt.Sprintf("10.244.%d.%d", i/250, i%250+1)))
	}
	return scenario{name: "ep-truncated", steps: []step{
		together("create 1003 pods", first...), create(svc()), together("all pods run", last...),
		toPod("one is not ready", podNamed("p0000"), becomes(false)),
		toPod("a few are not ready", podNamed("p0001"), becomes(false)),
		toPod("and more", podNamed("p0002"), becomes(false)), toPod("and more", podNamed("p0003"), becomes(false)),
		remove("Pod", "p0005"), pods(all), annotate("Service", "web", "look", "again"),
	}}
}

// together takes many steps as one.
func together(what string, steps ...step) step {
	return func(ctx context.Context, e *env) (string, bool, error) {
		for _, s := range steps {
			if _, _, err := s(ctx, e); err != nil {
				return "", false, err
			}
		}
		return what, false, nil
	}
}

// owned is a ConfigMap that the named ones own, of which those with a "!" block.
func owned(name string, owners ...string) step {
	return act(fmt.Sprintf("create ConfigMap %s of %v", name, owners), func(ctx context.Context, e *env) error {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, owner := range owners {
			blocks := owner[0] == '!'
			if blocks {
				owner = owner[1:]
			}
			ref := metav1.OwnerReference{
				APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: "nobody",
				BlockOwnerDeletion: &blocks,
			}
			if o := e.side.rec.find(e.ns, "ConfigMap", owner); o != nil {
				ref.UID = o.GetUID()
			}
			c.OwnerReferences = append(c.OwnerReferences, ref)
		}
		_, err := e.side.client.CoreV1().ConfigMaps(e.ns).Create(ctx, c, metav1.CreateOptions{})
		return err
	})
}

// garbageScenarios are about what goes with its owners.
func garbageScenarios() []scenario {
	const background, foreground = metav1.DeletePropagationBackground, metav1.DeletePropagationForeground
	const orphan = metav1.DeletePropagationOrphan
	return []scenario{
		{
			name: "gc-chain",
			steps: []step{
				owned("a"), owned("b", "a"), owned("c", "b"), owned("d", "c"),
				remove("ConfigMap", "a", background),
			},
		},
		{
			name:  "gc-chain-foreground",
			steps: []step{owned("a"), owned("b", "!a"), owned("c", "!b"), remove("ConfigMap", "a", foreground)},
		},
		{
			name:  "gc-foreground-not-blocking",
			steps: []step{owned("a"), owned("b", "a"), owned("c", "!a"), remove("ConfigMap", "a", foreground)},
		},
		{name: "gc-foreground-waits", steps: []step{
			owned("a"), owned("b", "!a"), patch("ConfigMap", "b", `{"metadata":{"finalizers":["`+held+`"]}}`),
			remove("ConfigMap", "a", foreground),
			patch("ConfigMap", "b", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["`+held+`"]}}`),
		}},
		{
			name:  "gc-orphan",
			steps: []step{owned("a"), owned("b", "a"), owned("c", "!a"), remove("ConfigMap", "a", orphan)},
		},
		{
			name: "gc-two-owners",
			steps: []step{
				owned("a"), owned("b"), owned("c", "a", "b"), remove("ConfigMap", "a"),
				remove("ConfigMap", "b"),
			},
		},
		{
			name:  "gc-two-owners-foreground",
			steps: []step{owned("a"), owned("b"), owned("c", "!a", "b"), remove("ConfigMap", "a", foreground)},
		},
		{name: "gc-nobody", steps: []step{owned("a", "nobody"), owned("b"), owned("c", "b", "nobody")}},
		{
			name: "gc-diamond",
			steps: []step{
				owned("a"), owned("b", "a"), owned("c", "a"), owned("d", "b", "c"),
				remove("ConfigMap", "a"),
			},
		},
	}
}
