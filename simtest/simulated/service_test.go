//lint:file-ignore SA1019 Endpoints are deprecated, but the controllers tested here handle them.

package simulated_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/controllers/endpointslicemirroring"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

// app selects the Pods of the Service.
var app = map[string]string{"app": "web"}

// service is default/web, of all Pods with the label app=web.
func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{
			Selector: app, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
}

// backend is a Pod of the Service.
func backend(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: app},
		Spec: corev1.PodSpec{
			NodeName: "node-1", Containers: []corev1.Container{{Name: "web", Image: "web:1"}},
		},
	}
}

// report sets the status of a Pod, as its kubelet does.
func report(u *simtest.User, name, ip string, ready corev1.ConditionStatus) {
	simtest.UpdateStatus(u, backend(name), func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
		}
	})
}

// lifeOfAService is a script: a Service gets Pods, one of them fails and recovers, the port and the selector change, a
// Pod takes the name of another, and a Service takes the name of another.
func lifeOfAService(u *simtest.User) {
	u.Create(service())
	u.Create(backend("a"))
	report(u, "a", "10.0.0.1", corev1.ConditionTrue)
	u.Settle()
	u.Create(backend("b"))
	report(u, "b", "10.0.0.2", corev1.ConditionTrue)
	report(u, "a", "10.0.0.1", corev1.ConditionFalse)
	u.Settle()
	report(u, "a", "10.0.0.1", corev1.ConditionTrue)
	simtest.Update(u, service(), func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(9090) })
	u.Settle()
	u.Do("remove Pod default/b", func(ctx context.Context, c client.Client) error {
		return client.IgnoreNotFound(c.Delete(ctx, backend("b"), client.GracePeriodSeconds(0)))
	})
	u.Create(backend("b"))
	report(u, "b", "10.0.0.3", corev1.ConditionTrue)
	u.Settle()
	u.Delete(service())
	u.Create(service())
	u.Settle()
	u.Delete(service())
	u.Settle()
}

func TestEndpointsOfAService(t *testing.T) {
	simtest.Check(t, simtest.Scenario{
		Build: simulated.Controllers(endpoints.Name),
		Others: []func(*simtest.Env) (simtest.Program, error){
			simulated.GarbageCollector(corev1.Resource("services"), corev1.Resource("endpoints")),
		},
		Roles:  simulated.Roles(t, "../../deploy/role.yaml", "../../deploy/manager.yaml"),
		Budget: 2 * time.Second,
		// When the change was seen that led to the last write.
		Ignore: []string{"endpoints default/web: metadata.annotations"},
		Script: lifeOfAService,
	})
}

func TestEndpointSlicesOfAService(t *testing.T) {
	simtest.Check(t, simtest.Scenario{
		Build: simulated.Controllers(endpointslice.Name),
		Others: []func(*simtest.Env) (simtest.Program, error){
			simulated.GarbageCollector(corev1.Resource("services"), discoveryv1.Resource("endpointslices")),
		},
		Roles:  simulated.Roles(t, "../../deploy/role.yaml", "../../deploy/manager.yaml"),
		Budget: 2 * time.Second,
		// As in kube-controller-manager, a create whose answer was lost is repeated, and the surplus slice deleted.
		Allow: []simtest.Rule{simtest.RuleCreates},
		// When the change was seen that led to the last write.
		Ignore: []string{"endpointslices default/web-<1>: metadata.annotations"},
		Script: lifeOfAService,
	})
}

// custom is default/web, written by hand, at these addresses.
func custom(ips ...string) *corev1.Endpoints {
	s := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: "http", Port: 8080}}}
	for _, ip := range ips {
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: ip})
	}
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Subsets: []corev1.EndpointSubset{s},
	}
}

// lifeOfCustomEndpoints is a script: Endpoints come before their Service, and change their addresses, families, ports
// and labels. The Service gets a selector and loses it. Endpoints, and then the Service, take the name of others.
func lifeOfCustomEndpoints(u *simtest.User) {
	withoutSelector := service()
	withoutSelector.Spec.Selector = nil
	u.Create(custom("10.0.0.1"))
	u.Create(withoutSelector)
	u.Settle()
	write := func(change func(*corev1.Endpoints)) { simtest.Update(u, custom(), change) }
	write(func(e *corev1.Endpoints) { e.Subsets = custom("10.0.0.1", "10.0.0.2", "fd00::1").Subsets })
	u.Settle()
	write(func(e *corev1.Endpoints) {
		e.Subsets = custom("10.0.0.2", "fd00::1").Subsets
		e.Subsets[0].Ports[0].Port = 9090
	})
	label := func(key, value string) {
		write(func(e *corev1.Endpoints) { e.Labels = map[string]string{key: value} })
	}
	label("team", "a")
	u.Settle()
	label("endpointslice.kubernetes.io/skip-mirror", "true")
	u.Settle()
	label("endpointslice.kubernetes.io/skip-mirror", "false")
	simtest.Update(u, service(), func(s *corev1.Service) { s.Spec.Selector = app })
	u.Settle()
	simtest.Update(u, service(), func(s *corev1.Service) { s.Spec.Selector = nil })
	u.Settle()
	u.Delete(custom())
	u.Create(custom("10.0.0.3"))
	u.Settle()
	u.Delete(withoutSelector)
	u.Create(withoutSelector)
	u.Settle()
	u.Delete(custom())
	u.Settle()
}

func TestMirroredSlicesOfEndpoints(t *testing.T) {
	simtest.Check(t, simtest.Scenario{
		Build: simulated.Controllers(endpointslicemirroring.Name),
		Others: []func(*simtest.Env) (simtest.Program, error){
			simulated.GarbageCollector(corev1.Resource("endpoints"), discoveryv1.Resource("endpointslices")),
		},
		Roles:  simulated.Roles(t, "../../deploy/role.yaml", "../../deploy/manager.yaml"),
		Budget: 2 * time.Second,
		// As in kube-controller-manager, a create whose answer was lost is repeated, and the surplus slice deleted.
		Allow:  []simtest.Rule{simtest.RuleCreates},
		Script: lifeOfCustomEndpoints,
	})
}
