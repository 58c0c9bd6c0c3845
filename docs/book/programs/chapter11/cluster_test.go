package chapter11

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

const page = "11-deployment"

// A cluster is an API server and the real Deployment controller, in a bubble. The test plays the ReplicaSet controller
// and the Pods: see follow and serve.
type cluster struct {
	*localapi.Test
	t *testing.T

	mu sync.Mutex
	// writes are the controller's, with the answers.
	writes []string
	// processes counts the managers that were started, and kill ends the last one. It is killed after its write number
	// killAfter, if that is not 0. The name of a process that was killed is dead.
	processes, killAfter int
	kill                 func()
	dead                 string
	// late is how late the events of the watches come.
	late time.Duration
	// inspector records what the managers do.
	inspector *inspect.Inspector
}

// inCluster runs f while the controllers of these names run.
func inCluster(t *testing.T, names []string, f func(c *cluster), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, inspector: inspect.New(inspect.Options{})}
		o := localapi.Options{Gate: c.gate(), Rand: rand.NewPCG(1, 2), NoKubernetesService: true}
		c.Test = localapi.NewTestWith(t, o, objects...)
		log := funcr.New(func(string, string) {}, funcr.Options{Verbosity: 4}) // The inspector reads the lines.
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), log))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				c.process(ctx, names)
			}
		}()
		c.settle()
		f(c)
		stop()
		<-ended
	})
}

// process runs a manager with the controllers of these names until ctx is done, or until it is killed.
func (c *cluster) process(ctx context.Context, names []string) {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	c.mu.Lock()
	c.processes++
	c.kill = kill
	config := c.RESTConfig()
	config.UserAgent, config.QPS = fmt.Sprintf("manager-%d", c.processes), -1
	c.mu.Unlock()
	mgr, err := ctrl.NewManager(config, ctrl.Options{Inspect: c.inspector})
	c.must(err)
	for _, name := range names {
		controller, err := controllers.New(mgr, name, controllers.Options{})
		c.must(err)
		c.must(mgr.Add(controller))
	}
	c.must(mgr.Run(ctx))
}

var justDeployment = []string{deployment.Name}

// settle lets the controllers finish what they do.
func (c *cluster) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// gate notes what the controllers write. It kills a process after a write if the test asks for that: the answer is
// lost then, and no further request of the process gets through.
func (c *cluster) gate() gate.Gate {
	ours := func(r *gate.Request) bool {
		return strings.HasPrefix(r.UserAgent, "manager") && r.Mutates() && r.Resource != "events"
	}
	return gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			if ours(r) {
				time.Sleep(time.Millisecond) // So no write is at the moment of an event.
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.dead != "" && strings.HasPrefix(r.UserAgent, c.dead) {
				return gate.FailWith(apierrors.NewServiceUnavailable("the process is dead"))
			}
			return gate.Verdict{}
		},
		OnAnswer: func(_ context.Context, r *gate.Request, a gate.Answer) gate.Verdict {
			if !ours(r) {
				return gate.Verdict{}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			what := r.Resource
			if r.Subresource != "" {
				what += "/" + r.Subresource
			}
			c.writes = append(c.writes, fmt.Sprintf("%s %s %s: %d", r.Verb, what, a.Name, a.Code))
			if len(c.writes) == c.killAfter {
				c.dead = fmt.Sprintf("manager-%d", c.processes)
				c.kill()
				return gate.Verdict{Action: gate.Drop}
			}
			return gate.Verdict{}
		},
		OnFrame: func(ctx context.Context, _ *gate.Request, f gate.Frame) gate.Verdict {
			c.mu.Lock()
			late := c.late
			c.mu.Unlock()
			if f.Name != "" && late > 0 {
				select {
				case <-time.After(late):
				case <-ctx.Done():
				}
			}
			return gate.Verdict{}
		},
	}
}

// written returns the writes since the last call.
func (c *cluster) written() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.writes
	c.writes = nil
	return all
}

// web is the Deployment default/web of the image web:1.
func web(replicas int, surge, unavailable string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web:1"}}},
			},
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxSurge: ptr.To(intstr.Parse(surge)), MaxUnavailable: ptr.To(intstr.Parse(unavailable)),
				},
			},
			RevisionHistoryLimit:    ptr.To[int32](10),
			ProgressDeadlineSeconds: ptr.To[int32](600),
		},
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

// start creates a Deployment.
func (c *cluster) start(d *appsv1.Deployment) {
	c.t.Helper()
	_, err := c.Client().AppsV1().Deployments("default").Create(c.t.Context(), d, metav1.CreateOptions{})
	c.must(err)
	c.settle()
}

// create creates a Deployment, and lets its Pods become available.
func (c *cluster) create(d *appsv1.Deployment) {
	c.t.Helper()
	c.start(d)
	for range 3 {
		c.follow()
		c.serve()
	}
	c.written()
}

// patch changes the Deployment.
func (c *cluster) patch(patch string) {
	c.t.Helper()
	_, err := c.Client().AppsV1().Deployments("default").Patch(c.t.Context(), "web", types.StrategicMergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	c.must(err)
	c.settle()
}

// image asks for another version.
func (c *cluster) image(image string) {
	c.t.Helper()
	c.patch(fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":%q}]}}}}`, image))
}

func (c *cluster) deployment() *appsv1.Deployment {
	c.t.Helper()
	d, err := c.Client().AppsV1().Deployments("default").Get(c.t.Context(), "web", metav1.GetOptions{})
	c.must(err)
	return d
}

// sets returns the ReplicaSets, in the order of their creation.
func (c *cluster) sets() []appsv1.ReplicaSet {
	c.t.Helper()
	list, err := c.Client().AppsV1().ReplicaSets("default").List(c.t.Context(), metav1.ListOptions{})
	c.must(err)
	slices.SortFunc(list.Items, byAge)
	return list.Items
}

// imageOf returns the version of a ReplicaSet.
func imageOf(rs *appsv1.ReplicaSet) string { return rs.Spec.Template.Spec.Containers[0].Image }

// report writes the status of a ReplicaSet.
func (c *cluster) report(rs *appsv1.ReplicaSet, pods, available int32) {
	c.t.Helper()
	status := appsv1.ReplicaSetStatus{
		Replicas: pods, ReadyReplicas: available, AvailableReplicas: available, ObservedGeneration: rs.Generation,
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas,
		"availableReplicas": status.AvailableReplicas, "observedGeneration": status.ObservedGeneration,
	}})
	c.must(err)
	_, err = c.Client().AppsV1().ReplicaSets("default").Patch(c.t.Context(), rs.Name, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	c.must(err)
	c.settle()
}

// follow lets each ReplicaSet have as many Pods as it asks for. New Pods are not available yet, and of too many those
// go first that are not.
func (c *cluster) follow() {
	c.t.Helper()
	for _, rs := range c.sets() {
		if size := *rs.Spec.Replicas; size != rs.Status.Replicas || rs.Generation != rs.Status.ObservedGeneration {
			c.report(&rs, size, min(size, rs.Status.AvailableReplicas))
		}
	}
}

// serve lets all Pods become available whose image is not broken.
func (c *cluster) serve() {
	c.t.Helper()
	for _, rs := range c.sets() {
		pods := rs.Status.Replicas
		if rs.Status.AvailableReplicas != pods && !strings.Contains(imageOf(&rs), "broken") {
			c.report(&rs, pods, pods)
		}
	}
}

// A row is a moment of a rollout.
type row struct {
	what string
	sets []count
}

// A count is what a ReplicaSet asks for and has.
type count struct{ wanted, available int }

func (r row) total() (n int) {
	for _, s := range r.sets {
		n += s.wanted
	}
	return n
}

func (r row) available() (n int) {
	for _, s := range r.sets {
		n += min(s.available, s.wanted)
	}
	return n
}

// watch records each change of the ReplicaSets until stop is called, which returns the rows.
func (c *cluster) watch() (stop func() []row) {
	c.t.Helper()
	now := row{what: "before"}
	names := []string{}
	put := func(rs *appsv1.ReplicaSet) {
		i := slices.Index(names, rs.Name)
		if i < 0 {
			i = len(names)
			names, now.sets = append(names, rs.Name), append(now.sets, count{})
		}
		now.sets[i] = count{int(*rs.Spec.Replicas), int(rs.Status.AvailableReplicas)}
	}
	list, err := c.Client().AppsV1().ReplicaSets("default").List(c.t.Context(), metav1.ListOptions{})
	c.must(err)
	slices.SortFunc(list.Items, byAge)
	for i := range list.Items {
		put(&list.Items[i])
	}
	w, err := c.Client().AppsV1().ReplicaSets("default").Watch(c.t.Context(),
		metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	c.must(err)
	rows := []row{{now.what, slices.Clone(now.sets)}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			rs, ok := e.Object.(*appsv1.ReplicaSet)
			if !ok {
				continue
			}
			before := slices.Clone(now.sets)
			put(rs)
			i := slices.Index(names, rs.Name)
			was := count{}
			if i < len(before) {
				was = before[i]
			}
			is := now.sets[i]
			switch {
			case is.wanted != was.wanted:
				now.what = fmt.Sprintf("%s: %d → %d", imageOf(rs), was.wanted, is.wanted)
			case is.available > was.available:
				now.what = fmt.Sprintf("%s: %d available", imageOf(rs), is.available)
			default:
				continue
			}
			rows = append(rows, row{now.what, slices.Clone(now.sets)})
		}
	}()
	return func() []row {
		w.Stop()
		<-ended
		return rows
	}
}

// byAge orders ReplicaSets by their creation.
func byAge(a, b appsv1.ReplicaSet) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }

// roll lets a rollout go on until nothing changes, and returns its moments.
func (c *cluster) roll(start func()) []row {
	c.t.Helper()
	stop := c.watch()
	start()
	for range 40 {
		c.follow()
		c.serve()
		c.settle()
	}
	return stop()
}

// at reads a number of a map's annotation.
func at(annotations map[string]string, key string) int {
	n, _ := strconv.Atoi(annotations["deployment.kubernetes.io/"+key])
	return n
}
