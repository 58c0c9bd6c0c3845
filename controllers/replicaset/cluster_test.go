package replicaset_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/manager"
)

// cluster is an API server in a bubble, with a running controller. The tests play the user and the kubelet.
type cluster struct {
	t      *testing.T
	server *localapi.Test
	log    *audit.Log
	client kubernetes.Interface
	stop   func()
}

// agent is how the controller under test names itself to the server.
const agent = "controller-under-test"

// run calls test in a bubble with a running cluster.
func run(t *testing.T, o localapi.Options, test func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, o)
		client, err := kubernetes.NewForConfig(server.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		c := &cluster{t: t, server: server, log: server.Audit(), client: client}
		c.start()
		test(c)
		c.stop()
	})
}

// start starts a manager with the controller. c.stop ends it.
func (c *cluster) start() {
	c.t.Helper()
	config := rest.CopyConfig(c.server.RESTConfig())
	config.UserAgent = agent
	m, err := manager.New(config, manager.Options{})
	c.must(err)
	controller, err := replicaset.New(m.GetClient(), m.Informers(), m.GetEventRecorderFor(replicaset.Name),
		replicaset.Options{})
	c.must(err)
	c.must(m.Add(controller))

	_, logged := ktesting.NewTestContext(c.t)
	ctx, cancel := context.WithCancel(logged)
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	c.stop = func() {
		cancel()
		c.must(<-done)
	}
	c.quiet()
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// quiet returns when everything waits for time to pass, or for an external event.
func (c *cluster) quiet() { synctest.Wait() }

// pass lets time pass.
func (c *cluster) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

type setChange func(*appsv1.ReplicaSet)

// create creates the ReplicaSet default/name of pods labelled app=name.
func (c *cluster) create(name string, replicas int32, changes ...setChange) *appsv1.ReplicaSet {
	c.t.Helper()
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
			},
		},
	}
	for _, change := range changes {
		change(set)
	}
	set, err := c.client.AppsV1().ReplicaSets("default").Create(c.t.Context(), set, metav1.CreateOptions{})
	c.must(err)
	c.quiet()
	return set
}

// edit changes a ReplicaSet as a user does.
func (c *cluster) edit(name string, change setChange) {
	c.t.Helper()
	set := c.set(name)
	change(set)
	_, err := c.client.AppsV1().ReplicaSets("default").Update(c.t.Context(), set, metav1.UpdateOptions{})
	c.must(err)
	c.quiet()
}

func replicas(n int32) setChange { return func(s *appsv1.ReplicaSet) { s.Spec.Replicas = ptr.To(n) } }

func (c *cluster) set(name string) *appsv1.ReplicaSet {
	c.t.Helper()
	set, err := c.client.AppsV1().ReplicaSets("default").Get(c.t.Context(), name, metav1.GetOptions{})
	c.must(err)
	return set
}

// pods returns all pods, sorted by name.
func (c *cluster) pods() []corev1.Pod {
	c.t.Helper()
	list, err := c.client.CoreV1().Pods("default").List(c.t.Context(), metav1.ListOptions{})
	c.must(err)
	return list.Items
}

// podsOf returns the pods that a ReplicaSet controls and that are not being deleted.
func (c *cluster) podsOf(set string) []corev1.Pod {
	c.t.Helper()
	return slices.DeleteFunc(c.pods(), func(p corev1.Pod) bool {
		ref := metav1.GetControllerOf(&p)
		return ref == nil || ref.Name != set || p.DeletionTimestamp != nil
	})
}

// createPod creates the bare pod default/name labelled app=app.
func (c *cluster) createPod(name, app string) {
	c.t.Helper()
	_, err := c.client.CoreV1().Pods("default").Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}, metav1.CreateOptions{})
	c.must(err)
	c.quiet()
}

// editPod changes a pod's metadata as a user does.
func (c *cluster) editPod(name string, change func(*corev1.Pod)) {
	c.t.Helper()
	pod, err := c.client.CoreV1().Pods("default").Get(c.t.Context(), name, metav1.GetOptions{})
	c.must(err)
	change(pod)
	_, err = c.client.CoreV1().Pods("default").Update(c.t.Context(), pod, metav1.UpdateOptions{})
	c.must(err)
	c.quiet()
}

// report writes a pod's status as its kubelet does; a pod that has no node is bound to one first.
func (c *cluster) report(name string, phase corev1.PodPhase, ready bool) {
	c.t.Helper()
	client := c.client.CoreV1().Pods("default")
	pod, err := client.Get(c.t.Context(), name, metav1.GetOptions{})
	c.must(err)
	if pod.Spec.NodeName == "" {
		binding := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "node-1"},
		}
		c.must(client.Bind(c.t.Context(), binding, metav1.CreateOptions{}))
		pod, err = client.Get(c.t.Context(), name, metav1.GetOptions{})
		c.must(err)
	}
	pod.Status.Phase = phase
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()},
	}
	_, err = client.UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	c.must(err)
	c.quiet()
}

// runAll makes every pod run and be ready.
func (c *cluster) runAll() {
	c.t.Helper()
	for _, pod := range c.pods() {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending {
			c.report(pod.Name, corev1.PodRunning, true)
		}
	}
}

// deletePod deletes a pod as a user does. A running pod stays terminating until bury.
func (c *cluster) deletePod(name string) {
	c.t.Helper()
	c.must(c.client.CoreV1().Pods("default").Delete(c.t.Context(), name, metav1.DeleteOptions{}))
	c.quiet()
}

// bury removes all terminating pods, as their kubelet does in the end.
func (c *cluster) bury() {
	c.t.Helper()
	for _, pod := range c.pods() {
		if pod.DeletionTimestamp != nil {
			c.must(
				c.client.CoreV1().Pods("default").Delete(c.t.Context(), pod.Name,
					metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}),
			)
		}
	}
	c.quiet()
}

// writes returns how many requests of this kind, such as "create pods", the controller has sent, whatever their
// outcome.
func (c *cluster) writes(kind string) int {
	return len(c.log.Entries(func(e audit.Entry) bool {
		return strings.HasPrefix(e.UserAgent, agent) && strings.HasPrefix(e.String(), kind+" ")
	}))
}

// allWrites returns the controller's writes without its events, one a line.
func (c *cluster) allWrites() []string {
	var lines []string
	for _, e := range c.log.Writes() {
		if strings.HasPrefix(e.UserAgent, agent) && e.Resource != "events" {
			lines = append(lines, e.String())
		}
	}
	return lines
}

// status returns the set's status without its conditions.
func (c *cluster) status(name string) appsv1.ReplicaSetStatus {
	c.t.Helper()
	status := c.set(name).Status
	status.Conditions = nil
	return status
}

// events returns the events on a ReplicaSet: "Type Reason" with their number.
func (c *cluster) events(name string) map[string]int {
	c.t.Helper()
	c.pass(time.Second) // for the event sender
	list, err := c.client.CoreV1().Events("default").List(c.t.Context(), metav1.ListOptions{})
	c.must(err)
	found := map[string]int{}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "ReplicaSet" && e.InvolvedObject.Name == name &&
			e.Source.Component == "replicaset-controller" {
			found[e.Type+" "+e.Reason] += int(e.Count)
		}
	}
	return found
}

// equal fails the test when got is not want.
func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
