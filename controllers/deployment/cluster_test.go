package deployment_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/manager"
)

// cluster is an API server in a bubble, with the Deployment and ReplicaSet controllers at work on it, and a kubelet
// that takes a second to start or stop a pod. The tests play the user.
type cluster struct {
	t      *testing.T
	server *localapi.Test
	log    *audit.Log
	client kubernetes.Interface
	// rewrite changes the bodies of the controller's requests, as a mutating webhook would; nil: it does not.
	rewrite func(method, path string, body []byte) []byte
	stop    func() // ends the controllers and the kubelet
}

// agent is how the controller under test names itself to the server.
const agent = "controller-under-test"

// run calls test in a bubble with a running cluster, whose API server lets changes pass through o.
func run(t *testing.T, o localapi.Options, test func(c *cluster)) {
	t.Helper()
	runRewriting(t, o, nil, test)
}

// runRewriting is run with a rewriter of requests.
func runRewriting(t *testing.T, o localapi.Options, rewrite func(method, path string, body []byte) []byte,
	test func(c *cluster),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, o)
		client, err := kubernetes.NewForConfig(server.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		c := &cluster{t: t, server: server, log: server.Audit(), client: client, rewrite: rewrite}
		c.start()
		test(c)
		c.stop()
	})
}

// rewriter rewrites the bodies of requests.
type rewriter struct {
	next    http.RoundTripper
	rewrite func(method, path string, body []byte) []byte
}

func (r rewriter) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		return r.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	body = r.rewrite(req.Method, req.URL.Path, body)
	req = req.Clone(req.Context())
	req.Body, req.ContentLength, req.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return r.next.RoundTrip(req)
}

// start starts the two processes of a cluster: a manager with the controller under test, and one with the ReplicaSet
// controller and the kubelet. c.stop ends them.
func (c *cluster) start() {
	c.t.Helper()
	config := rest.CopyConfig(c.server.RESTConfig())
	config.UserAgent = agent
	if c.rewrite != nil {
		config.ContentType = "application/json"
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return rewriter{next, c.rewrite} })
	}
	m, err := manager.New(config, manager.Options{})
	c.must(err)
	deployments, err := deployment.New(m.GetClient(), m.Informers(), m.GetEventRecorderFor(deployment.Name),
		deployment.Options{})
	c.must(err)
	c.must(m.Add(deployments))

	others, err := manager.New(c.server.RESTConfig(), manager.Options{})
	c.must(err)
	sets, err := replicaset.New(others.GetClient(), others.Informers(), others.GetEventRecorderFor(replicaset.Name),
		replicaset.Options{})
	c.must(err)
	nodes, err := kubelet.New(others.GetClient(), others.Informers(), kubelet.Options{Delay: time.Second})
	c.must(err)
	c.must(others.Add(sets))
	c.must(others.Add(nodes))

	logger := ktesting.NewLogger(c.t, ktesting.NewConfig(ktesting.Verbosity(2)))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	done := make(chan error, 2)
	go func() { done <- m.Run(ctx) }()
	go func() { done <- others.Run(ctx) }()
	c.stop = func() {
		cancel()
		c.must(errors.Join(<-done, <-done))
	}
	synctest.Wait()
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// pass lets time pass.
func (c *cluster) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// settle lets enough time pass for any rollout of these tests to end, and for no deadline.
func (c *cluster) settle() { c.pass(time.Minute) }

type change func(*appsv1.Deployment)

// create creates the Deployment default/web of pods labelled app=web and image web:1.
func (c *cluster) create(replicas int32, changes ...change) *appsv1.Deployment {
	c.t.Helper()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web:1"}}},
			},
		},
	}
	for _, ch := range changes {
		ch(d)
	}
	d, err := c.client.AppsV1().Deployments("default").Create(c.t.Context(), d, metav1.CreateOptions{})
	c.must(err)
	synctest.Wait()
	return d
}

// edit changes the Deployment as a user does.
func (c *cluster) edit(changes ...change) {
	c.t.Helper()
	d := c.web()
	for _, ch := range changes {
		ch(d)
	}
	_, err := c.client.AppsV1().Deployments("default").Update(c.t.Context(), d, metav1.UpdateOptions{})
	c.must(err)
	synctest.Wait()
}

func replicas(n int32) change { return func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(n) } }

func image(tag string) change {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:" + tag }
}

func paused(p bool) change { return func(d *appsv1.Deployment) { d.Spec.Paused = p } }

func annotated(key, value string) change {
	return func(d *appsv1.Deployment) { metav1.SetMetaDataAnnotation(&d.ObjectMeta, key, value) }
}

func recreate(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func rolling(surge, unavailable int) change {
	return func(d *appsv1.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: ptr.To(intstr.FromInt(surge)), MaxUnavailable: ptr.To(intstr.FromInt(unavailable)),
			},
		}
	}
}

func (c *cluster) web() *appsv1.Deployment {
	c.t.Helper()
	d, err := c.client.AppsV1().Deployments("default").Get(c.t.Context(), "web", metav1.GetOptions{})
	c.must(err)
	return d
}

// sets are all ReplicaSets, by revision.
func (c *cluster) sets() []appsv1.ReplicaSet {
	c.t.Helper()
	list, err := c.client.AppsV1().ReplicaSets("default").List(c.t.Context(), metav1.ListOptions{})
	c.must(err)
	slices.SortFunc(list.Items, func(a, b appsv1.ReplicaSet) int {
		return strings.Compare(a.Annotations[replicasets.RevisionAnnotation],
			b.Annotations[replicasets.RevisionAnnotation])
	})
	return list.Items
}

// shape is "revision:image:size" of every ReplicaSet, by revision.
func (c *cluster) shape() string {
	c.t.Helper()
	var parts []string
	for _, rs := range c.sets() {
		parts = append(parts, fmt.Sprintf("%s:%s:%d", rs.Annotations[replicasets.RevisionAnnotation],
			rs.Spec.Template.Spec.Containers[0].Image, *rs.Spec.Replicas))
	}
	return strings.Join(parts, " ")
}

// conditions are the Deployment's, as "Type=Status/Reason", sorted.
func (c *cluster) conditions() string {
	c.t.Helper()
	var parts []string
	for _, cond := range c.web().Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s=%s/%s", cond.Type, cond.Status, cond.Reason))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// counts are the numbers of the Deployment's status.
func (c *cluster) counts() string {
	c.t.Helper()
	s := c.web().Status
	return fmt.Sprintf("replicas=%d updated=%d ready=%d available=%d unavailable=%d", s.Replicas, s.UpdatedReplicas,
		s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas)
}

// events are the controller's events in the order in which they were first seen: "Type Reason message".
func (c *cluster) events() []string {
	c.t.Helper()
	c.pass(time.Second) // let the sender send
	list, err := c.client.CoreV1().Events("default").List(c.t.Context(), metav1.ListOptions{})
	c.must(err)
	items := slices.DeleteFunc(list.Items,
		func(e corev1.Event) bool { return e.Source.Component != "deployment-controller" })
	// names hold the time
	slices.SortStableFunc(items, func(a, b corev1.Event) int { return strings.Compare(a.Name, b.Name) })
	var lines []string
	for _, e := range items {
		lines = append(lines, fmt.Sprintf("%s %s %s", e.Type, e.Reason, e.Message))
	}
	return lines
}

// writes are the controller's writes since the last call, its events left out.
func (c *cluster) writes() []audit.Entry {
	var found []audit.Entry
	for _, e := range c.log.Writes() {
		if strings.HasPrefix(e.UserAgent, agent) && e.Resource != "events" {
			found = append(found, e)
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
