package kubelet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/kubelet"
)

// cluster is an API server with nodes, in a bubble.
type cluster struct {
	t       *testing.T
	ctx     context.Context
	client  kubernetes.Interface
	server  *localapi.Test
	log     *audit.Log
	options kubelet.Options
	kubelet *kubelet.Fake
	stop    func()
}

func inCluster(t *testing.T, o kubelet.Options, f func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTest(t)
		c := &cluster{
			t: t, ctx: t.Context(), client: kubernetes.NewForConfigOrDie(server.RESTConfig()),
			server: server, log: server.Audit(), options: o,
		}
		c.start()
		f(c)
		c.stop()
	})
}

// start runs a new kubelet.
func (c *cluster) start() {
	c.t.Helper()
	factory, err := informer.NewFactory(c.server.RESTConfig(), informer.FactoryOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	writer, err := client.New(c.server.RESTConfig(), client.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	made, err := kubelet.New(writer, factory, c.options)
	if err != nil {
		c.t.Fatal(err)
	}
	c.kubelet = made.(*kubelet.Fake)
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan error, 2)
	go func() { done <- factory.Run(ctx) }()
	go func() { done <- c.kubelet.Run(ctx) }()
	c.stop = func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				c.t.Errorf("run: %v", err)
			}
		}
	}
	synctest.Wait()
	if err := c.kubelet.Health(); err != nil {
		c.t.Errorf("health: %v", err)
	}
}

func (c *cluster) create(name, image string, change ...func(*corev1.Pod)) {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
	for _, f := range change {
		f(pod)
	}
	if _, err := c.client.CoreV1().Pods("default").Create(c.ctx, pod, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) pod(name string) *corev1.Pod {
	c.t.Helper()
	pod, err := c.client.CoreV1().Pods("default").Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return pod
}

func (c *cluster) pods() []corev1.Pod {
	c.t.Helper()
	list, err := c.client.CoreV1().Pods("default").List(c.ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return list.Items
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// brief is phase, node, address, readiness, and what the container waits for.
func brief(pod *corev1.Pod) string {
	s := fmt.Sprintf("%s %s %s", pod.Status.Phase, pod.Spec.NodeName, pod.Status.PodIP)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			s += " ready"
		}
	}
	for _, cs := range pod.Status.ContainerStatuses {
		if cs.State.Waiting != nil {
			s += " " + cs.State.Waiting.Reason
		}
	}
	return s
}

func (c *cluster) want(name, want string) {
	c.t.Helper()
	if got := brief(c.pod(name)); got != want {
		c.t.Errorf("%s is %q, want %q", name, got, want)
	}
}

func TestLifeOfAPod(t *testing.T) {
	inCluster(t, kubelet.Options{Nodes: 2, Delay: 3 * time.Second}, func(c *cluster) {
		c.create("a", "nginx")
		after(0)
		c.want("a", "Pending node-1  ContainerCreating")
		after(2999 * time.Millisecond)
		c.want("a", "Pending node-1  ContainerCreating")
		after(time.Millisecond)
		c.want("a", "Running node-1 10.244.0.1 ready")
		var types []corev1.PodConditionType
		for _, cond := range c.pod("a").Status.Conditions {
			types = append(types, cond.Type)
		}
		if got, want := fmt.Sprint(types),
			"[PodReadyToStartContainers Initialized Ready ContainersReady PodScheduled]"; got != want {
			t.Errorf("conditions %s, want %s", got, want)
		}
		if err := c.client.CoreV1().Pods("default").Delete(c.ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		after(2999 * time.Millisecond)
		if c.pod("a").DeletionTimestamp == nil {
			t.Error("not being deleted")
		}
		after(time.Millisecond)
		if left := c.pods(); len(left) != 0 {
			t.Errorf("left %v", left)
		}
		s := c.kubelet.Stats()
		if s.Bound != 1 || s.Started != 1 || s.Removed != 1 || s.Addresses != 0 || s.Writes != 2+4 {
			t.Errorf("stats %+v", s)
		}
	})
}

// A grace period that is shorter than the delay is kept.
func TestGracePeriod(t *testing.T) {
	inCluster(t, kubelet.Options{Delay: time.Minute}, func(c *cluster) {
		c.create("a", "nginx")
		after(time.Minute)
		second := int64(1)
		if err := c.client.CoreV1().Pods("default").Delete(c.ctx, "a",
			metav1.DeleteOptions{GracePeriodSeconds: &second}); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		if left := c.pods(); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}

// If a finalizer holds the pod, the kubelet requests its removal only once. The pod keeps its address until it is gone.
func TestFinalizer(t *testing.T) {
	inCluster(t, kubelet.Options{}, func(c *cluster) {
		c.create("a", "nginx", func(p *corev1.Pod) { p.Finalizers = []string{"test/hold"} })
		after(time.Second)
		if err := c.client.CoreV1().Pods("default").Delete(c.ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		after(time.Minute)
		deletes := c.log.Entries(func(e audit.Entry) bool { return e.Verb == "delete" })
		if len(deletes) != 2 || c.kubelet.Stats().Addresses != 1 {
			t.Errorf("deletes %v, %d addresses", deletes, c.kubelet.Stats().Addresses)
		}
		if _, err := c.client.CoreV1().Pods("default").Patch(c.ctx, "a", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		if c.kubelet.Stats().Addresses != 0 {
			t.Error("the address was not released")
		}
	})
}

func TestBrokenImage(t *testing.T) {
	inCluster(t, kubelet.Options{Nodes: 1, Delay: time.Second}, func(c *cluster) {
		c.create("a", "nginx:broken")
		after(time.Second)
		c.want("a", "Pending node-1 10.244.0.1 ErrImagePull")
		after(time.Second)
		c.want("a", "Pending node-1 10.244.0.1 ImagePullBackOff")
		c.log.Reset()
		after(time.Hour)
		if writes := c.log.Writes(); len(writes) != 0 {
			t.Errorf("writes while nothing changes: %v", writes)
		}
		patch := []byte(`{"spec":{"containers":[{"name":"c","image":"nginx"}]}}`)
		if _, err := c.client.CoreV1().Pods("default").Patch(c.ctx, "a", types.StrategicMergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		after(0)
		c.want("a", "Running node-1 10.244.0.1 ready")
	})
}

// recorder remembers events.
type recorder struct {
	events.Recorder // panics
	got             []string
}

func (r *recorder) Event(_ runtime.Object, eventType, reason, message string) {
	r.got = append(r.got, eventType+" "+reason+": "+message)
}

func TestSpread(t *testing.T) {
	recorded := &recorder{}
	inCluster(t,
		kubelet.Options{
			Nodes: 3, PodsPerNode: 4, Concurrency: 1, PodCIDRs: []string{"10.1.0.0/24", "fd00::/64"},
			Recorder: recorded,
		},
		func(c *cluster) {
			for i := range 13 {
				c.create(fmt.Sprintf("p-%02d", i), "nginx")
				after(0)
			}
			c.want("p-00", "Running node-1 10.1.0.1 ready")
			c.want("p-05", "Running node-3 10.1.0.6 ready")
			c.want("p-12", "Pending  ")
			if p := c.pod("p-07"); len(p.Status.PodIPs) != 2 || p.Status.PodIPs[1].IP != "fd00::8" {
				t.Errorf("podIPs %v", p.Status.PodIPs)
			}
			var why string
			for _, cond := range c.pod("p-12").Status.Conditions {
				why += fmt.Sprintf("%s=%s %s: %s", cond.Type, cond.Status, cond.Reason, cond.Message)
			}
			if want := "PodScheduled=False Unschedulable: 0/3 nodes are available: 3 Too many pods."; why != want {
				t.Errorf("conditions %q", why)
			}
			const full = "Warning FailedScheduling: 0/3 nodes are available: 3 Too many pods."
			if len(recorded.got) != 1 || recorded.got[0] != full {
				t.Errorf("events %q", recorded.got)
			}
			if err := c.client.CoreV1().Pods("default").Delete(c.ctx, "p-04", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			after(0)
			c.want("p-12", "Running node-2 10.1.0.13 ready")
		})
}

// Every one of many pods runs, evenly spread, each at an address of its own. After that nothing is written.
func TestManyAtOnce(t *testing.T) {
	inCluster(t, kubelet.Options{Nodes: 4, Delay: time.Second, Spread: time.Second, Seed: 7}, func(c *cluster) {
		for i := range 60 {
			c.create(fmt.Sprintf("p-%02d", i), "nginx")
		}
		after(3 * time.Second)
		nodes, ips := map[string]int{}, map[string]bool{}
		for _, p := range c.pods() {
			if p.Status.Phase != corev1.PodRunning {
				t.Errorf("%s: %s", p.Name, brief(&p))
			}
			nodes[p.Spec.NodeName]++
			ips[p.Status.PodIP] = true
		}
		if len(ips) != 60 || fmt.Sprint(nodes) != "map[node-1:15 node-2:15 node-3:15 node-4:15]" {
			t.Errorf("%d addresses, nodes %v", len(ips), nodes)
		}
		c.log.Reset()
		after(time.Hour)
		if writes := c.log.Writes(); len(writes) != 0 {
			t.Errorf("writes while nothing changes: %v", writes)
		}
	})
}

// A new kubelet takes over where the old one ended. It writes nothing, and assigns no address twice.
func TestRestart(t *testing.T) {
	inCluster(t, kubelet.Options{Nodes: 2}, func(c *cluster) {
		c.create("a", "nginx")
		c.create("b", "nginx:bad")
		after(time.Second)
		c.stop()
		c.log.Reset()
		c.start()
		after(time.Second)
		if writes := c.log.Writes(); len(writes) != 0 {
			t.Errorf("writes after the restart: %v", writes)
		}
		c.create("d", "nginx")
		after(time.Second)
		var ips []string
		for _, p := range c.pods() {
			ips = append(ips, p.Status.PodIP)
		}
		slices.Sort(ips)
		if got := fmt.Sprint(ips); got != "[10.244.0.1 10.244.0.2 10.244.0.3]" {
			t.Errorf("addresses %s", got)
		}
	})
}

func TestNodesAreKept(t *testing.T) {
	inCluster(t, kubelet.Options{Nodes: 2}, func(c *cluster) {
		node, err := c.client.CoreV1().Nodes().Get(c.ctx, "node-2", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if !ready || node.Status.Allocatable.Pods().Value() != 1000 ||
			node.Status.Addresses[0].Address != "172.18.0.3" {
			t.Errorf("status %+v", node.Status)
		}
		if err := c.client.CoreV1().Nodes().Delete(c.ctx, "node-2", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		again, err := c.client.CoreV1().Nodes().Get(c.ctx, "node-2", metav1.GetOptions{})
		if err != nil || again.UID == node.UID {
			t.Errorf("node-2 again: %v, %v", again, err)
		}
	})
}
