package capstone_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	capstone "github.com/flyball-dev/flyball/exercises/13-capstone"
	"github.com/flyball-dev/flyball/simtest"
)

// build returns the controller as simtest runs it.
func build(e *simtest.Env) (simtest.Program, error) {
	config := e.Config()
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := capstone.New(h, config.Host)
	c.Random = func() float64 { return 0.5 }
	return simtest.ProgramFunc(func(ctx context.Context) error {
		c.Run(ctx)
		return nil
	}), nil
}

func service(name, app string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
}

// pod returns a Pod of the app web at 10.0.0.n.
func pod(n int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("web-", n), Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
}

// ready gives a Pod its address, and makes it ready or not.
func ready(u *simtest.User, n int, is corev1.ConditionStatus) {
	simtest.UpdateStatus(u, pod(n), func(p *corev1.Pod) { setReady(p, n, is) })
}

func setReady(p *corev1.Pod, n int, is corev1.ConditionStatus) {
	p.Status.PodIP = fmt.Sprint("10.0.0.", n)
	p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
}

// TestScore kills the controller after every write, lets its caches lag, and cuts its watches. It tries each single
// fault, and some pairs of two.
func TestScore(t *testing.T) {
	scenario := simtest.Scenario{Build: build, Script: script, Matches: matches, Serial: true}
	found, report := simtest.Find(t, scenario, simtest.Options{Budget: time.Minute, Runs: 300})
	if found != nil {
		t.Error(found)
	}
	t.Logf("%d runs", report.Runs)
}

func script(u *simtest.User) {
	u.Create(service("web", "web"))
	u.Create(pod(1))
	u.Create(pod(2))
	ready(u, 1, corev1.ConditionTrue)
	u.Settle()
	ready(u, 2, corev1.ConditionTrue)
	ready(u, 1, corev1.ConditionFalse)
	u.Settle()
	u.Delete(service("web", "web"))
	u.Create(service("front", "web"))
	u.Delete(pod(1))
	u.Settle()
}

func matches(s *simtest.State) error {
	var all []string
	//lint:ignore SA1019 They are deprecated, but clients that do not know EndpointSlices read them.
	for _, e := range simtest.List[*corev1.Endpoints](s, "default") {
		if e.Name == "kubernetes" {
			continue
		}
		all = append(all, e.Name)
		for _, subset := range e.Subsets {
			for _, a := range subset.Addresses {
				all = append(all, a.IP)
			}
			for _, a := range subset.NotReadyAddresses {
				all = append(all, a.IP+" (not ready)")
			}
		}
	}
	if got := strings.Join(all, " "); got != "front 10.0.0.2" {
		return fmt.Errorf("the Endpoints are [%s], they should be [front 10.0.0.2]", got)
	}
	return nil
}
