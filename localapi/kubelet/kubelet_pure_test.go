package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// live takes the pod through stages, a second each, as if each status was written.
func live(p *corev1.Pod, stages ...stage) *corev1.Pod {
	for i, s := range stages {
		sit := situation{stage: s, hostIP: "172.18.0.2", now: at(i + 1), pullable: DefaultPullable}
		if s != creating {
			sit.podIPs = []string{"10.244.0.1", "fd00::1"}
		}
		p.Status = wantedStatus(p, sit)
	}
	return p
}

// summary is the phase, the conditions as Type=Status@second, and the containers as name=state, one in brackets is not ready.
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

// Source: k8s.io/kubernetes v1.37.1 pkg/kubelet/kubelet_pods.go, generateAPIPodStatus and getPhase
func TestStatus(t *testing.T) {
	sidecar := func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "a"}, {Name: "side", Image: "b", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	}
	brokenInit := func(p *corev1.Pod) {
		sidecar(p)
		p.Spec.InitContainers[0].Image = "a:broken"
	}
	gate := func(status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
			if status != "" {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "gate", Status: status, LastTransitionTime: at(0)})
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
			"Pending PodReadyToStartContainers=False@1 Initialized=True@1 Ready=False@1 ContainersReady=False@1 PodScheduled=True@0 c0=[ContainerCreating]",
		},
		{
			"running", live(pod("nginx", "redis"), creating, pulling),
			"Running PodReadyToStartContainers=True@2 Initialized=True@1 Ready=True@2 ContainersReady=True@2 PodScheduled=True@0 c0=running c1=running",
		},
		{
			"running at once, and later", live(pod("nginx"), pulling, pulling, pulling),
			"Running PodReadyToStartContainers=True@1 Initialized=True@1 Ready=True@1 ContainersReady=True@1 PodScheduled=True@0 c0=running",
		},
		{
			"one image cannot be pulled", live(pod("nginx", "redis:bad"), creating, pulling),
			"Pending PodReadyToStartContainers=True@2 Initialized=True@1 Ready=False@1 ContainersReady=False@1 PodScheduled=True@0 c0=running c1=[ErrImagePull]",
		},
		{
			"it still cannot", live(pod("nginx:bad"), creating, pulling, backedOff),
			"Pending PodReadyToStartContainers=True@2 Initialized=True@1 Ready=False@1 ContainersReady=False@1 PodScheduled=True@0 c0=[ImagePullBackOff]",
		},
		{
			"the image was mended", live(with(live(pod("nginx:bad"), pulling, backedOff), func(p *corev1.Pod) { p.Spec.Containers[0].Image = "nginx" }), backedOff),
			"Running PodReadyToStartContainers=True@1 Initialized=True@1 Ready=True@1 ContainersReady=True@1 PodScheduled=True@0 c0=running",
		},
		{
			"init containers, being created", live(with(pod("nginx"), sidecar), creating),
			"Pending PodReadyToStartContainers=False@1 Initialized=False@1 Ready=False@1 ContainersReady=False@1 PodScheduled=True@0 init=[PodInitializing] side=[PodInitializing] c0=[PodInitializing]",
		},
		{
			"init containers, running", live(with(pod("nginx"), sidecar), creating, pulling, pulling),
			"Running PodReadyToStartContainers=True@2 Initialized=True@2 Ready=True@2 ContainersReady=True@2 PodScheduled=True@0 init=Completed side=running c0=running",
		},
		{
			"an init container cannot start", live(with(pod("nginx"), brokenInit), creating, pulling),
			"Pending PodReadyToStartContainers=True@2 Initialized=False@1 Ready=False@1 ContainersReady=False@1 PodScheduled=True@0 init=[ErrImagePull] side=[PodInitializing] c0=[PodInitializing]",
		},
		{
			"a gate nobody opens", live(with(pod("nginx"), gate("")), creating, pulling),
			"Running PodReadyToStartContainers=True@2 Initialized=True@1 Ready=False@1 ContainersReady=True@2 PodScheduled=True@0 c0=running",
		},
		{
			"a closed gate", live(with(pod("nginx"), gate(corev1.ConditionFalse)), creating, pulling),
			"Running gate=False@0 PodReadyToStartContainers=True@2 Initialized=True@1 Ready=False@1 ContainersReady=True@2 PodScheduled=True@0 c0=running",
		},
		{
			"an open gate", live(with(pod("nginx"), gate(corev1.ConditionTrue)), creating, pulling),
			"Running gate=True@0 PodReadyToStartContainers=True@2 Initialized=True@1 Ready=True@2 ContainersReady=True@2 PodScheduled=True@0 c0=running",
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

// Source: k8s.io/kubernetes v1.37.1 pkg/kubelet/status/generate.go
func TestStatusMessages(t *testing.T) {
	p := live(pod("nginx", "redis:bad"), pulling)
	if c := findCondition(p, corev1.PodReady); c.Reason != "ContainersNotReady" || c.Message != "containers with unready status: [c1]" {
		t.Errorf("Ready: %s %q", c.Reason, c.Message)
	}
	if w := p.Status.ContainerStatuses[1].State.Waiting; !strings.Contains(w.Message, `"redis:bad"`) {
		t.Errorf("message %q", w.Message)
	}
	p = live(with(pod("nginx"), func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "x:bad"}} }), pulling)
	if c := findCondition(p, corev1.PodInitialized); c.Reason != "ContainersNotInitialized" || c.Message != "containers with incomplete status: [i]" {
		t.Errorf("Initialized: %s %q", c.Reason, c.Message)
	}
}

func TestStatusAddressesAndTimes(t *testing.T) {
	p := live(pod("nginx"), creating)
	if p.Status.PodIP != "" || p.Status.HostIP != "172.18.0.2" || !p.Status.StartTime.Equal(ptr.To(at(1))) {
		t.Errorf("being created: %+v", p.Status)
	}
	live(p, pulling)
	if diff := cmp.Diff([]corev1.PodIP{{IP: "10.244.0.1"}, {IP: "fd00::1"}}, p.Status.PodIPs); p.Status.PodIP != "10.244.0.1" || diff != "" {
		t.Errorf("podIP %s: %s", p.Status.PodIP, diff)
	}
	if p.Status.ObservedGeneration != 1 || !strings.HasPrefix(p.Status.ContainerStatuses[0].ContainerID, "containerd://") {
		t.Errorf("%+v", p.Status)
	}
}

// What others wrote, and what has not changed, is as it was.
func TestStatusKeepsWhatIsNotItsOwn(t *testing.T) {
	p := live(pod("nginx"), creating, pulling)
	p.Status.ContainerStatuses[0].RestartCount = 7
	p.Status.QOSClass = corev1.PodQOSBurstable
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "Foreign", Status: corev1.ConditionTrue})
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

func TestDefaultPullable(t *testing.T) {
	for image, want := range map[string]bool{
		"nginx": true, "nginx:1.27": true, "badger:2": true, "registry:5000/a/b:v1": true,
		"nginx:bad": false, "nginx:broken": false, "does-not-exist:1": false, "x/does-not-exist": false,
	} {
		if DefaultPullable(image) != want {
			t.Errorf("%s: %v", image, !want)
		}
	}
}

func TestPlace(t *testing.T) {
	node := func(name string, change ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": name}}}
		for _, f := range change {
			f(n)
		}
		return n
	}
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	pinned := with(pod("a"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} })
	tests := []struct {
		name         string
		pod          *corev1.Pod
		candidates   []candidate
		want, reason string
	}{
		{"no nodes", pod("a"), nil, "", "no nodes available to schedule pods"},
		{"the first of equals", pod("a"), []candidate{{node("a"), 1, 5}, {node("b"), 1, 5}}, "a", ""},
		{"the least loaded", pod("a"), []candidate{{node("a"), 2, 5}, {node("b"), 1, 5}}, "b", ""},
		{"not a full one", pod("a"), []candidate{{node("a"), 1, 1}, {node("b"), 4, 5}}, "b", ""},
		{"not a cordoned one", pod("a"), []candidate{{node("a", cordon), 0, 5}, {node("b"), 4, 5}}, "b", ""},
		{"the one selected", pinned, []candidate{{node("a"), 0, 5}, {node("b"), 4, 5}}, "b", ""},
		{
			"none", pinned, []candidate{{node("a"), 0, 5}, {node("b"), 5, 5}, {node("c", cordon), 0, 5}}, "",
			"0/3 nodes are available: 1 Too many pods, 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable.",
		},
	}
	for _, tt := range tests {
		if got, reason := place(tt.pod, tt.candidates); got != tt.want || reason != tt.reason {
			t.Errorf("%s: %q, %q", tt.name, got, reason)
		}
	}
}

func TestSchedulable(t *testing.T) {
	unbound := func(change func(*corev1.Pod)) *corev1.Pod {
		return with(pod("a"), func(p *corev1.Pod) { p.Spec.NodeName = ""; change(p) })
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"yes":             {unbound(func(*corev1.Pod) {}), true},
		"by name":         {unbound(func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }), true},
		"another's":       {unbound(func(p *corev1.Pod) { p.Spec.SchedulerName = "mine" }), false},
		"bound":           {pod("a"), false},
		"being deleted":   {unbound(func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(at(0)) }), false},
		"gated":           {unbound(func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }), false},
		"failed unplaced": {unbound(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false},
	} {
		if got := schedulable(tt.pod); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPoolGoesRound(t *testing.T) {
	p, err := newPool("10.0.0.7/29") // .1 to .6
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 6 {
		a, err := p.take()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.String())
	}
	if want := "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6"; strings.Join(got, " ") != want {
		t.Errorf("got %v", got)
	}
	if a, err := p.take(); err == nil {
		t.Errorf("took %s of an exhausted range", a)
	}
	for ip := range p.taken {
		if s := ip.String(); s == "10.0.0.2" || s == "10.0.0.5" {
			p.release(ip)
		}
	}
	if a, _ := p.take(); a.String() != "10.0.0.2" {
		t.Errorf("took %s", a)
	}
	if a, _ := p.take(); a.String() != "10.0.0.5" {
		t.Errorf("took %s", a)
	}
}

func TestPoolRanges(t *testing.T) {
	for _, cidr := range []string{"", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/32", "fd00::/127"} {
		if _, err := newPool(cidr); err == nil {
			t.Errorf("%q accepted", cidr)
		}
	}
	p, err := newPool("fd00::/126") // no broadcast address
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fd00::1", "fd00::2", "fd00::3"} {
		if a, err := p.take(); err != nil || a.String() != want {
			t.Errorf("took %v, %v, want %s", a, err, want)
		}
	}
}

func TestLedger(t *testing.T) {
	l, err := newLedger([]string{"10.0.0.0/24", "fd00::/64"})
	if err != nil {
		t.Fatal(err)
	}
	numbered := func(i int) *corev1.Pod {
		return with(pod("a"), func(p *corev1.Pod) { p.Name, p.UID, p.Spec.NodeName = fmt.Sprint(i), types.UID(fmt.Sprint(i)), "" })
	}
	nodes := func() []candidate {
		return []candidate{{node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, capacity: 1}, {node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, capacity: 1}}
	}
	for i, want := range []string{"a", "b", ""} {
		if node, before, _ := l.place(numbered(i), nodes()); node != want || before {
			t.Errorf("pod %d on %q", i, node)
		}
	}
	if node, before, _ := l.place(numbered(0), nodes()); node != "a" || !before {
		t.Errorf("again: %q, %v", node, before)
	}
	ips, err := l.addresses("0")
	if again, _ := l.addresses("0"); err != nil || strings.Join(ips, " ") != "10.0.0.1 fd00::1" || !cmp.Equal(ips, again) {
		t.Errorf("addresses %v, then %v, %v", ips, again, err)
	}
	// One that has an address from before a restart keeps it, and nobody else gets it.
	old := with(pod("a"), func(p *corev1.Pod) {
		p.UID = "old"
		p.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0.2"}, {IP: "192.0.2.1"}}
	})
	l.adopt(old)
	if ips, _ := l.addresses("1"); ips[0] != "10.0.0.3" {
		t.Errorf("addresses %v", ips)
	}
	if woken := l.forget(numbered(0)); len(woken) != 1 || woken[0].Name != "2" {
		t.Errorf("woken %v", woken)
	}
	if node, _, _ := l.place(numbered(2), nodes()); node != "a" || len(l.waiting()) != 0 {
		t.Errorf("pod 2 on %q, waiting %v", node, l.waiting())
	}
	for _, p := range []*corev1.Pod{numbered(1), numbered(2), old} {
		l.forget(p)
	}
	if n := l.addressesInUse(); n != 0 || len(l.load) != 0 || len(l.entries) != 0 {
		t.Errorf("left: %d addresses, %v, %v", n, l.load, l.entries)
	}
}

func TestLedgerOfWrites(t *testing.T) {
	l, _ := newLedger(nil)
	p := with(pod("a"), func(p *corev1.Pod) { p.ResourceVersion = "9" })
	if l.overtaken(p) {
		t.Error("overtaken by nothing")
	}
	l.wrote(p.UID, "10")
	if !l.overtaken(p) {
		t.Error("not overtaken")
	}
	p.ResourceVersion = "10"
	if l.overtaken(p) {
		t.Error("overtaken by itself")
	}
}

func TestNodeStatus(t *testing.T) {
	n := newNode(1, 110, t0)
	if n.Name != "node-2" || n.Status.Addresses[0].Address != "172.18.0.3" || n.Status.Capacity.Pods().Value() != 110 {
		t.Errorf("%s %v", n.Name, n.Status)
	}
	if !sameNodeStatus(n.Status, wantedNodeStatus(n, 1, 110, at(99))) {
		t.Error("time alone changes the status")
	}
	n.Status.Conditions[3].Status = corev1.ConditionUnknown
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "Foreign"})
	got := wantedNodeStatus(n, 1, 110, at(99))
	if c := got.Conditions[3]; c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Equal(ptr.To(at(99))) || len(got.Conditions) != 5 {
		t.Errorf("%+v", got.Conditions)
	}
}

func TestDelay(t *testing.T) {
	k := &Kubelet{options: Options{Delay: time.Second, Spread: time.Second, Seed: 1}}
	a, b := k.delay(pod("a"), "start"), k.delay(pod("a"), "stop")
	if a < time.Second || a >= 2*time.Second || a == b || a != k.delay(pod("a"), "start") {
		t.Errorf("delays %v, %v", a, b)
	}
	k.options.Seed = 2
	if k.delay(pod("a"), "start") == a {
		t.Error("the seed makes no difference")
	}
}

func TestStatusPatch(t *testing.T) {
	p := live(pod("nginx"), creating)
	status := live(p.DeepCopy(), pulling).Status
	body, err := statusPatch(p, status)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"uid":"uid-p"`, `"phase":"Running"`, `"$setElementOrder/conditions"`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if strings.Contains(string(body), "hostIP") {
		t.Errorf("what did not change is in %s", body)
	}
}
