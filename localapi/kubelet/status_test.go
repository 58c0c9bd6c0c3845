package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time { return metav1.NewTime(t0.Add(time.Duration(seconds) * time.Second)) }

// pod has a container for each image, and is bound.
func pod(images ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid-p", Generation: 1},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(0)},
		}},
	}
	for i, image := range images {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: image})
	}
	return p
}

func with(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(p)
	return p
}

// live takes the pod through stages of one second each, as if each status had been written.
func live(p *corev1.Pod, stages ...stage) *corev1.Pod {
	for i, s := range stages {
		sit := situation{stage: s, hostIP: "172.18.0.2", now: at(i + 1)}
		if s != creating {
			sit.podIPs = []string{"10.244.0.1", "fd00::1"}
		}
		p.Status = wantedStatus(p, sit)
	}
	return p
}

// summary is the phase, the conditions as Type=Status@second, and the containers as name=state, one in brackets is
// not ready.
func summary(p *corev1.Pod) string {
	var b strings.Builder
	b.WriteString(string(p.Status.Phase))
	for _, c := range p.Status.Conditions {
		fmt.Fprintf(&b, " %s=%s@%d", c.Type, c.Status, int(c.LastTransitionTime.Sub(t0).Seconds()))
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, cs := range list {
			state := "?"
			switch {
			case cs.State.Waiting != nil:
				state = cs.State.Waiting.Reason
			case cs.State.Running != nil:
				state = "running"
			case cs.State.Terminated != nil:
				state = cs.State.Terminated.Reason
			}
			if !cs.Ready {
				state = "[" + state + "]"
			}
			fmt.Fprintf(&b, " %s=%s", cs.Name, state)
		}
	}
	return b.String()
}

// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/kubelet_pods.go, generateAPIPodStatus and getPhase
func TestStatus(t *testing.T) {
	sidecar := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			{Name: "init", Image: "a"},
			{Name: "side", Image: "b", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
		}
	}
	brokenInit := func(p *corev1.Pod) {
		sidecar(p)
		p.Spec.InitContainers[0].Image = "a:broken"
	}
	gate := func(status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
			if status != "" {
				p.Status.Conditions = append(p.Status.Conditions,
					corev1.PodCondition{Type: "gate", Status: status, LastTransitionTime: at(0)})
			}
		}
	}
	tests := []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{
			"being created", live(pod("nginx"), creating),
			"Pending PodReadyToStartContainers=False@1 Initialized=True@1 Ready=False@1 ContainersReady=False@1 " +
				"PodScheduled=True@0 c0=[ContainerCreating]",
		},
		{
			"running", live(pod("nginx", "redis"), creating, pulling),
			"Running PodReadyToStartContainers=True@2 Initialized=True@1 Ready=True@2 ContainersReady=True@2 " +
				"PodScheduled=True@0 c0=running c1=running",
		},
		{
			"running at once, and later", live(pod("nginx"), pulling, pulling, pulling),
			"Running PodReadyToStartContainers=True@1 Initialized=True@1 Ready=True@1 ContainersReady=True@1 " +
				"PodScheduled=True@0 c0=running",
		},
		{
			"one image cannot be pulled", live(pod("nginx", "redis:bad"), creating, pulling),
			"Pending PodReadyToStartContainers=True@2 Initialized=True@1 Ready=False@1 ContainersReady=False@1 " +
				"PodScheduled=True@0 c0=running c1=[ErrImagePull]",
		},
		{
			"it still cannot", live(pod("nginx:bad"), creating, pulling, backedOff),
			"Pending PodReadyToStartContainers=True@2 Initialized=True@1 Ready=False@1 ContainersReady=False@1 " +
				"PodScheduled=True@0 c0=[ImagePullBackOff]",
		},
		{
			"the image was mended",
			live(
				with(live(pod("nginx:bad"), pulling, backedOff),
					func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx" }), backedOff,
			),
			"Running PodReadyToStartContainers=True@1 Initialized=True@1 Ready=True@1 ContainersReady=True@1 " +
				"PodScheduled=True@0 c0=running",
		},
		{
			"init containers, being created", live(with(pod("nginx"), sidecar), creating),
			"Pending PodReadyToStartContainers=False@1 Initialized=False@1 Ready=False@1 ContainersReady=False@1 " +
				"PodScheduled=True@0 init=[PodInitializing] side=[PodInitializing] c0=[PodInitializing]",
		},
		{
			"init containers, running", live(with(pod("nginx"), sidecar), creating, pulling, pulling),
			"Running PodReadyToStartContainers=True@2 Initialized=True@2 Ready=True@2 ContainersReady=True@2 " +
				"PodScheduled=True@0 init=Completed side=running c0=running",
		},
		{
			"an init container cannot start", live(with(pod("nginx"), brokenInit), creating, pulling),
			"Pending PodReadyToStartContainers=True@2 Initialized=False@1 Ready=False@1 ContainersReady=False@1 " +
				"PodScheduled=True@0 init=[ErrImagePull] side=[PodInitializing] c0=[PodInitializing]",
		},
		{
			"a gate nobody opens", live(with(pod("nginx"), gate("")), creating, pulling),
			"Running PodReadyToStartContainers=True@2 Initialized=True@1 Ready=False@1 ContainersReady=True@2 " +
				"PodScheduled=True@0 c0=running",
		},
		{
			"a closed gate", live(with(pod("nginx"), gate(corev1.ConditionFalse)), creating, pulling),
			"Running gate=False@0 PodReadyToStartContainers=True@2 Initialized=True@1 Ready=False@1 " +
				"ContainersReady=True@2 PodScheduled=True@0 c0=running",
		},
		{
			"an open gate", live(with(pod("nginx"), gate(corev1.ConditionTrue)), creating, pulling),
			"Running gate=True@0 PodReadyToStartContainers=True@2 Initialized=True@1 Ready=True@2 " +
				"ContainersReady=True@2 PodScheduled=True@0 c0=running",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := summary(tt.pod); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/kubelet/status/generate.go
func TestStatusMessages(t *testing.T) {
	p := live(pod("nginx", "redis:bad"), pulling)
	if c := findCondition(p, corev1.PodReady); c.Reason != "ContainersNotReady" ||
		c.Message != "containers with unready status: [c1]" {
		t.Errorf("Ready: %s %q", c.Reason, c.Message)
	}
	if w := p.Status.ContainerStatuses[1].State.Waiting; !strings.Contains(w.Message, `"redis:bad"`) {
		t.Errorf("message %q", w.Message)
	}
	p = live(
		with(pod("nginx"),
			func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "x:bad"}} }), pulling,
	)
	if c := findCondition(p, corev1.PodInitialized); c.Reason != "ContainersNotInitialized" ||
		c.Message != "containers with incomplete status: [i]" {
		t.Errorf("Initialized: %s %q", c.Reason, c.Message)
	}
}

func TestStatusAddressesAndTimes(t *testing.T) {
	p := live(pod("nginx"), creating)
	if p.Status.PodIP != "" || p.Status.HostIP != "172.18.0.2" || !p.Status.StartTime.Equal(ptr.To(at(1))) {
		t.Errorf("being created: %+v", p.Status)
	}
	live(p, pulling)
	if diff := cmp.Diff([]corev1.PodIP{{IP: "10.244.0.1"}, {IP: "fd00::1"}},
		p.Status.PodIPs); p.Status.PodIP != "10.244.0.1" || diff != "" {
		t.Errorf("podIP %s: %s", p.Status.PodIP, diff)
	}
	if p.Status.ObservedGeneration != 1 ||
		!strings.HasPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://") {
		t.Errorf("%+v", p.Status)
	}
}

// Conditions of others, and those that have not changed, stay as they were.
func TestStatusKeepsWhatIsNotItsOwn(t *testing.T) {
	p := live(pod("nginx"), creating, pulling)
	p.Status.ContainerStatuses[0].RestartCount = 7
	p.Status.QOSClass = corev1.PodQOSBurstable
	p.Status.Conditions = append(p.Status.Conditions,
		corev1.PodCondition{Type: "Foreign", Status: corev1.ConditionTrue})
	before := p.DeepCopy()
	live(p, pulling)
	moved := before.Status.Conditions
	before.Status.Conditions = append(moved[len(moved)-1:], moved[:len(moved)-1]...) // others' come first
	if diff := cmp.Diff(before.Status, p.Status); diff != "" {
		t.Error(diff)
	}
}

func TestReached(t *testing.T) {
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want stage
	}{
		"nothing yet":   {pod("a"), creating},
		"being created": {live(pod("a"), creating), creating},
		"running":       {live(pod("a"), pulling), pulling},
		"failed":        {live(pod("a:bad"), pulling), pulling},
		"failed twice":  {live(pod("a:bad"), backedOff), backedOff},
	} {
		if got := reached(tt.pod); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
