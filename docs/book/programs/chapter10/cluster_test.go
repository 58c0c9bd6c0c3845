package chapter10

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

const page = "10-endpoints"

// TestMain turns off the warning that Endpoints are deprecated: the chapter is about them.
func TestMain(m *testing.M) {
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	os.Exit(m.Run())
}

// weather is how slow the server is.
type weather struct {
	// write is how long a write of Endpoints takes, and late how late the events of Endpoints come.
	write, late time.Duration
}

// A cluster is an API server and a manager with one controller, in a bubble.
type cluster struct {
	*localapi.Test
	t        *testing.T
	began    time.Time
	recorder *trace.Recorder

	mu sync.Mutex
	// sent are the writes of Endpoints and EndpointSlices that were answered, by anybody but the test.
	sent []sent
	// steps is what the manager did, in order.
	steps []step
}

type sent struct {
	at         time.Duration
	verb, name string
}

type step struct {
	of trace.Subject
	trace.Step
}

// real returns a function that adds the real controller of that name.
func real(name string, o controllers.Options) func(mgr ctrl.Manager) error {
	return func(mgr ctrl.Manager) error {
		c, err := controllers.New(mgr, name, o)
		if err != nil {
			return err
		}
		return mgr.Add(c)
	}
}

// inCluster runs f while a manager runs with the controller that setup adds.
func inCluster(t *testing.T, w weather, setup func(mgr ctrl.Manager) error, f func(c *cluster),
	objects ...runtime.Object,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, began: time.Now()}
		o := localapi.Options{Gate: c.gate(w), Rand: rand.NewPCG(1, 2), NoKubernetesService: true}
		c.Test = localapi.NewTestWith(t, o, objects...)
		inspector := inspect.New(inspect.Options{})
		c.recorder = inspector.Recorder()
		c.recorder.Listen(func(of trace.Subject, s *trace.Step) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.steps = append(c.steps, step{of, *s})
		})
		config := c.RESTConfig()
		config.UserAgent = "manager"
		config.QPS = -1
		mgr, err := ctrl.NewManager(config, ctrl.Options{Inspect: inspector})
		if err == nil {
			err = setup(mgr)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		ended := make(chan error)
		go func() { ended <- mgr.Run(ctx) }()
		c.settle()
		f(c)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// settle lets the controller finish what it does, and everything that is late arrive.
func (c *cluster) settle() {
	time.Sleep(10 * time.Second)
	synctest.Wait()
}

// writes returns what was sent since the last call of start.
func (c *cluster) writes() []sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}

// start begins to record anew.
func (c *cluster) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began, c.sent, c.steps = time.Now(), nil, nil
}

func (c *cluster) gate(w weather) gate.Gate {
	ours := func(r *gate.Request) bool {
		return strings.HasPrefix(r.UserAgent, "manager") && strings.HasPrefix(r.Resource, "endpoint") && r.Mutates()
	}
	return gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			if ours(r) {
				time.Sleep(w.write)
			}
			return gate.Verdict{}
		},
		OnAnswer: func(_ context.Context, r *gate.Request, a gate.Answer) gate.Verdict {
			if ours(r) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.sent = append(c.sent, sent{time.Since(c.began), r.Verb, a.Name})
			}
			return gate.Verdict{}
		},
		OnFrame: func(ctx context.Context, r *gate.Request, f gate.Frame) gate.Verdict {
			if strings.HasPrefix(r.Resource, "endpoint") && f.Name != "" && w.late > 0 {
				select {
				case <-time.After(w.late):
				case <-ctx.Done():
				}
			}
			return gate.Verdict{}
		},
	}
}

// service returns a Service that selects the Pods with the label app=name.
func service(name string) *corev1.Service {
	addresses := map[string]string{"web": "10.96.0.1", "api": "10.96.0.2"}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIP: addresses[name], IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
}

// pod returns the Pod app-n, on a node of the name node.
func pod(app string, n int, change ...func(p *corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("%s-%d", app, n), Labels: map[string]string{"app": app},
		},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "c", Image: "web:1"}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// serving gives a Pod an address, and says whether it is ready.
func serving(ip string, isReady bool) func(p *corev1.Pod) {
	return func(p *corev1.Pod) {
		condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
		if isReady {
			condition.Status = corev1.ConditionTrue
		}
		p.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
			Conditions: []corev1.PodCondition{condition},
		}
	}
}

// Client returns a client of the server.
func (c *cluster) Client() kubernetes.Interface { return kubernetes.NewForConfigOrDie(c.RESTConfig()) }

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Error(err)
	}
}

func (c *cluster) createPod(p *corev1.Pod) {
	c.t.Helper()
	_, err := c.Client().CoreV1().Pods("default").Create(c.t.Context(), p, metav1.CreateOptions{})
	c.must(err)
}

// report changes the status of a Pod, as a kubelet does.
func (c *cluster) report(name string, change func(p *corev1.Pod)) {
	c.t.Helper()
	p := &corev1.Pod{}
	change(p)
	patch, err := json.Marshal(map[string]any{"status": p.Status})
	c.must(err)
	_, err = c.Client().CoreV1().Pods("default").Patch(c.t.Context(), name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	c.must(err)
}

// patch changes a Pod or its labels.
func (c *cluster) patch(name, patch string) {
	c.t.Helper()
	_, err := c.Client().CoreV1().Pods("default").Patch(c.t.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	c.must(err)
}

func (c *cluster) deletePod(name string) {
	c.t.Helper()
	now := int64(0)
	c.must(c.Client().CoreV1().Pods("default").Delete(c.t.Context(), name,
		metav1.DeleteOptions{GracePeriodSeconds: &now}))
}

// endpoints returns the addresses in the Endpoints: those that are ready, and those that are not.
func (c *cluster) endpoints(name string) (ready, not []string, found bool) {
	c.t.Helper()
	ep, err := c.Client().CoreV1().Endpoints("default").Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, false
	}
	for _, s := range ep.Subsets {
		for _, a := range s.Addresses {
			ready = append(ready, a.IP)
		}
		for _, a := range s.NotReadyAddresses {
			not = append(not, a.IP)
		}
	}
	return ready, not, true
}

// describe puts Endpoints into words.
func (c *cluster) describe(name string) string {
	c.t.Helper()
	ready, not, found := c.endpoints(name)
	switch {
	case !found:
		return "(there are none)"
	case len(ready)+len(not) == 0:
		return "no address"
	case len(not) == 0:
		return strings.Join(ready, " ")
	}
	return strings.TrimSpace(strings.Join(ready, " ") + " not ready: " + strings.Join(not, " "))
}
