package node

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// able skips the test and says why if no node is to be run here.
func able(t *testing.T) {
	t.Helper()
	if os.Getenv("FLYBALL_NODE") == "" {
		t.Skip("it takes minutes and a docker engine: make test-node runs it")
	}
	if err := Needs(t.Context()); err != nil {
		t.Skipf("this machine cannot run a node: %v", err)
	}
}

// start starts a node, or skips the test, see [able]. The node ends with the test.
func start(t *testing.T, controllers string) *Node {
	t.Helper()
	able(t)
	begin := time.Now()
	n, err := Start(t.Context(), t.Output(), controllers)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the node was ready after %s", time.Since(begin).Round(time.Second))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(n.logs())
		}
		ctx := context.WithoutCancel(t.Context())
		used, err := docker(ctx, "stats", "--no-stream", "--format", "{{.MemUsage}}", n.name)
		if err != nil {
			t.Error(err)
		}
		t.Logf("memory of the container at the end: %s", used)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// TestStory plays a Deployment's life with kube-controller-manager's controllers, lets ours take over, and plays it
// again.
func TestStory(t *testing.T) {
	n := start(t, Theirs)
	var theirs, ours, control figures
	run(t, "kube-controller-manager", func(t *testing.T) { theirs = story(t, n) })
	run(t, "without preStop", func(t *testing.T) { control = withoutPreStop(t, n) })
	run(t, "taken over", func(t *testing.T) { takeOver(t, n) })
	run(t, "flyball manager", func(t *testing.T) { ours = story(t, n) })
	t.Logf("rollouts under traffic:\n%s", table(theirs, ours, control))
	onPage(t, table(theirs, ours, control))
	run(t, "demo", func(t *testing.T) { demo(t, n) })
	run(t, "nothing forbidden", func(t *testing.T) { nothingForbidden(t, n) })
}

// TestFaults disturbs a cluster in which our controllers work, and gives it back to kube-controller-manager's.
func TestFaults(t *testing.T) {
	n := start(t, Ours)
	must(t, n.DeployManager(t.Context()))
	w := newWeb(t, n, "web")
	run(t, "leader killed", w.leaderKilled)
	run(t, "API server restarted", w.serverRestarted)
	run(t, "kubelet stopped", w.kubeletStopped)
	run(t, "node drained", w.drained)
	run(t, "controllers switched back on", w.switchedOn)
}

// nothingForbidden fails the test if the API server has refused something to the user of the manager's pods: the roles
// in deploy are enough. What a quota refuses is forbidden, too, to every user.
func nothingForbidden(t *testing.T, n *Node) {
	pods := n.Client.CoreV1().Pods(system)
	list, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + manager})
	must(t, err)
	for i := range list.Items {
		name := list.Items[i].Name
		log, err := pods.GetLogs(name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		must(t, err)
		if text := string(log); !strings.Contains(text, "lease") || strings.Contains(text, "orbidden: User") {
			t.Errorf("the log of %s:\n%s", name, text)
		}
	}
}

// run runs a subtest, and ends the test if it fails: what follows needs what it leaves.
func run(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	if !t.Run(name, f) {
		t.FailNow()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// takeOver switches four of kube-controller-manager's controllers off and deploys flyball manager. It changes nothing
// about a Deployment that is already there.
func takeOver(t *testing.T, n *Node) {
	w := newWeb(t, n, "web")
	before := w.settled(t)
	must(t, n.SetControllers(t.Context(), Ours))
	must(t, n.DeployManager(t.Context()))
	w.unmoved(t, before)
	w.remove(t)
}
