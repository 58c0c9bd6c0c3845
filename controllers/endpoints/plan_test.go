package endpoints

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/controllers/internal/serving"
)

func ports(p ...corev1.ServicePort) func(*corev1.Service) {
	return func(svc *corev1.Service) { svc.Spec.Ports = p }
}

func noSelector(svc *corev1.Service) { svc.Spec.Selector = nil }

// stored returns what a first sync of the Service with these pods writes, as the cache would show it.
func stored(svc *corev1.Service, change func(*corev1.Endpoints), pods ...*corev1.Pod) *corev1.Endpoints {
	ep := plan(observed{service: svc, pods: pods}).endpoints
	ep.ResourceVersion, ep.UID = "100", "ep-uid"
	if change != nil {
		change(ep)
	}
	return ep
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller_test.go, TestSyncEndpoints*
func TestPlanSubsets(t *testing.T) {
	named := servicePort("http", 80, intstr.FromString("http"))
	tests := []struct {
		name    string
		service *corev1.Service
		pods    []*corev1.Pod
		want    []corev1.EndpointSubset
		skipped int
	}{
		{"no pods", service(), nil, []corev1.EndpointSubset{}, 0},
		{
			"ready and not ready", service(),
			[]*corev1.Pod{pod(2, unready), pod(1), pod(3)},
			[]corev1.EndpointSubset{{Addresses: addresses(1, 3), NotReadyAddresses: addresses(2), Ports: http}},
			0,
		},
		{
			"only not ready", service(),
			[]*corev1.Pod{pod(1, unready)},
			[]corev1.EndpointSubset{{NotReadyAddresses: addresses(1), Ports: http}},
			0,
		},
		{
			"publishing not ready", service(publishNotReady),
			[]*corev1.Pod{pod(1, unready), pod(2, deleting), pod(3, deleting, unready)},
			[]corev1.EndpointSubset{{Addresses: addresses(1, 2, 3), Ports: http}},
			0,
		},
		{
			"what is on its way out, ended or without address is left out", service(),
			[]*corev1.Pod{pod(1, deleting), pod(2, inPhase(corev1.PodFailed)), pod(3, withIPs()), pod(4)},
			[]corev1.EndpointSubset{{Addresses: addresses(4), Ports: http}},
			0,
		},
		{
			"another family is skipped", service(),
			[]*corev1.Pod{pod(1, withIPs("fd00::1")), pod(2)},
			[]corev1.EndpointSubset{{Addresses: addresses(2), Ports: http}},
			1,
		},
		{
			"two ports of the same addresses", service(ports(named, servicePort("admin", 81, intstr.FromInt32(9090)))),
			[]*corev1.Pod{pod(1), pod(2)},
			[]corev1.EndpointSubset{
				{Addresses: addresses(1, 2), Ports: []corev1.EndpointPort{tcp("admin", 9090), tcp("http", 8080)}},
			},
			0,
		},
		{
			"a name that means another number on one pod", service(ports(named)),
			[]*corev1.Pod{pod(1), pod(2, func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].ContainerPort = 8081 })},
			[]corev1.EndpointSubset{
				{Addresses: addresses(1), Ports: http},
				{Addresses: addresses(2), Ports: []corev1.EndpointPort{tcp("http", 8081)}},
			},
			0,
		},
		{
			"a name that one pod lacks", service(ports(named)),
			[]*corev1.Pod{pod(1), pod(2, func(p *corev1.Pod) { p.Spec.Containers[0].Ports = nil })},
			[]corev1.EndpointSubset{{Addresses: addresses(1), Ports: http}},
			1,
		},
		{
			"headless without ports", service(headless, ports()),
			[]*corev1.Pod{pod(1), pod(2, unready)},
			[]corev1.EndpointSubset{{Addresses: addresses(1), NotReadyAddresses: addresses(2)}},
			0,
		},
		{
			"headless with a port", service(headless),
			[]*corev1.Pod{pod(1)},
			[]corev1.EndpointSubset{{Addresses: addresses(1), Ports: http}},
			0,
		},
		{"a cluster IP without ports", service(ports()), []*corev1.Pod{pod(1)}, []corev1.EndpointSubset{}, 0},
		{
			"two pods at one IP", service(),
			[]*corev1.Pod{pod(1, withIPs("9.9.9.9")), pod(2, withIPs("9.9.9.9"))},
			[]corev1.EndpointSubset{
				{
					Addresses: []corev1.EndpointAddress{address(1, atIP("9.9.9.9")), address(2, atIP("9.9.9.9"))},
					Ports:     http,
				},
			},
			0,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := plan(observed{service: tt.service, pods: tt.pods})
			if got.verb != create || len(got.skipped) != tt.skipped {
				t.Fatalf("verb %v, skipped %v", got.verb, got.skipped)
			}
			for i := range tt.want {
				serving.SortByHash(tt.want[i].Ports)
			}
			serving.SortByHash(tt.want)
			if diff := cmp.Diff(tt.want, got.endpoints.Subsets); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, syncService
func TestPlanOfServicesThatHaveNone(t *testing.T) {
	current := stored(service(), nil, pod(1))
	for name, tt := range map[string]struct {
		service *corev1.Service
		want    verb
	}{
		"gone":             {nil, remove},
		"without selector": {service(noSelector), leave},
		"external name": {
			service(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }),
			leave,
		},
		"selector for all is some": {
			service(func(s *corev1.Service) { s.Spec.Selector = map[string]string{} }),
			update,
		},
	} {
		if got := plan(observed{service: tt.service, current: current}); got.verb != tt.want {
			t.Errorf("%s: verb %v, want %v", name, got.verb, tt.want)
		}
	}
}

func TestPlanCreate(t *testing.T) {
	trigger := t0.Add(1500 * time.Millisecond).In(time.FixedZone("east", 3600))
	got := plan(observed{service: service(headless), pods: []*corev1.Pod{pod(1)}, trigger: trigger})
	want := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web",
			Labels: map[string]string{
				"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller",
				"service.kubernetes.io/headless": "",
			},
			Annotations: map[string]string{
				"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:01.5Z",
			},
		},
		Subsets: []corev1.EndpointSubset{{Addresses: addresses(1), Ports: http}},
	}
	if diff := cmp.Diff(want, got.endpoints); got.verb != create || diff != "" {
		t.Errorf("verb %v: %s", got.verb, diff)
	}
}

// What does not belong to the controller survives an update, and what does is corrected. The objects of the caches do
// not change.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, syncService
func TestPlanUpdate(t *testing.T) {
	svc := service(func(s *corev1.Service) { s.Labels = map[string]string{"team": "b"} })
	current := stored(service(headless), func(ep *corev1.Endpoints) {
		ep.Annotations = map[string]string{
			"mine": "kept", corev1.EndpointsLastChangeTriggerTime: "old", corev1.EndpointsOverCapacity: "warning",
		}
		ep.Labels["stray"] = "x"
		ep.Finalizers = []string{"kept/too"}
	}, pod(1))
	before := current.DeepCopy()
	got := plan(observed{service: svc, pods: []*corev1.Pod{pod(2)}, current: current})
	want := current.DeepCopy()
	want.Labels = map[string]string{"team": "b", managedByLabel: managedByValue}
	want.Annotations = map[string]string{"mine": "kept"}
	want.Subsets = []corev1.EndpointSubset{{Addresses: addresses(2), Ports: http}}
	if diff := cmp.Diff(want, got.endpoints); got.verb != update || diff != "" {
		t.Errorf("verb %v: %s", got.verb, diff)
	}
	if diff := cmp.Diff(before, current); diff != "" {
		t.Errorf("the cached object was changed: %s", diff)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go, syncService's no-op check,
// labelsCorrectForEndpoints and capacityAnnotationSetCorrectly; their tests of the same names
func TestPlanLeavesWhatIsRight(t *testing.T) {
	many := func(numbers ...int) (list []*corev1.Pod) {
		for _, i := range numbers {
			list = append(list, pod(i))
		}
		return list
	}
	label := func(key, value string) func(*corev1.Endpoints) {
		return func(ep *corev1.Endpoints) { ep.Labels[key] = value }
	}
	annotate := func(key, value string) func(*corev1.Endpoints) {
		return func(ep *corev1.Endpoints) { ep.Annotations = map[string]string{key: value} }
	}
	without := func(key string) func(*corev1.Endpoints) {
		return func(ep *corev1.Endpoints) { delete(ep.Labels, key) }
	}
	ownLabels := func(s *corev1.Service) {
		s.Labels = map[string]string{corev1.IsHeadlessService: "", managedByLabel: "someone"}
	}
	tests := []struct {
		name    string
		service *corev1.Service
		change  func(*corev1.Endpoints)
		want    verb
	}{
		{"equal", service(), nil, leave},
		{
			"empty instead of nil", service(),
			func(ep *corev1.Endpoints) { ep.Subsets[0].NotReadyAddresses = []corev1.EndpointAddress{} }, leave,
		},
		{
			"the pod's resource version", service(),
			func(ep *corev1.Endpoints) { ep.Subsets[0].Addresses[0].TargetRef.ResourceVersion = "7" }, leave,
		},
		{
			"another pod of the name", service(),
			func(ep *corev1.Endpoints) { ep.Subsets[0].Addresses[0].TargetRef.UID = "else" }, update,
		},
		{
			"another node", service(), func(ep *corev1.Endpoints) { *ep.Subsets[0].Addresses[0].NodeName = "else" },
			update,
		},
		{"another layout", service(), func(ep *corev1.Endpoints) {
			a := ep.Subsets[0].Addresses
			ep.Subsets = []corev1.EndpointSubset{{Addresses: a[1:], Ports: http}, {Addresses: a[:1], Ports: http}}
		}, leave},
		{"no subsets", service(), func(ep *corev1.Endpoints) { ep.Subsets = nil }, update},
		{"headless label missing", service(headless), without(corev1.IsHeadlessService), leave},
		{"headless label too many", service(), label(corev1.IsHeadlessService, ""), leave},
		{"mark missing", service(), without(managedByLabel), update},
		{"somebody else's mark", service(), label(managedByLabel, "else"), update},
		{"label missing", service(), without("team"), update},
		{"label changed", service(), label("team", "b"), update},
		{"label too many", service(), label("stray", ""), update},
		{"no labels at all", service(), func(ep *corev1.Endpoints) { ep.Labels = nil }, update},
		{"a Service that carries our labels itself", service(ownLabels), nil, leave},
		{"the same, headless label too many", service(ownLabels), label(corev1.IsHeadlessService, ""), update},
		{"foreign annotation", service(), annotate("mine", "x"), leave},
		{"old trigger time", service(), annotate(corev1.EndpointsLastChangeTriggerTime, "2020-01-01T00:00:00Z"), leave},
		{
			"over-capacity annotation without need", service(), annotate(corev1.EndpointsOverCapacity, "truncated"),
			update,
		},
		{"over-capacity annotation of old", service(), annotate(corev1.EndpointsOverCapacity, "warning"), update},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pods := many(1, 2, 3)
			o := observed{service: tt.service, pods: pods, current: stored(tt.service, tt.change, pods...), trigger: t0}
			got := plan(o)
			if got.verb != tt.want {
				t.Fatalf("verb %v, want %v: %s", got.verb, tt.want, cmp.Diff(o.current, got.endpoints))
			}
			if got.verb == update { // once is enough
				if again := plan(
					observed{service: tt.service, pods: pods, current: got.endpoints},
				); again.verb != leave {
					t.Errorf("after the update: verb %v", again.verb)
				}
			}
		})
	}
}
