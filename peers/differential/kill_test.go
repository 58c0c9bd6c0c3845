package differential

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

const (
	killNamespace                       = "kill"
	killReplicas, killSurge, killAbsent = 6, 2, 1
	killHistory                         = 2
)

// TestKill kills the manager at a random moment of a rollout and starts it anew, until FLYBALL_KILLS of the kills
// came before the rollout was complete; one in three is killed again while it picks up what the last one left. The
// outcome is always the same, nothing is left without an owner, and at no moment of the API server's history were
// there more replicas asked for than maxSurge allows, or fewer available than maxUnavailable does. (There may be more
// pods than asked for, as with kube-controller-manager: those of a ReplicaSet that has just been told to have fewer.)
func TestKill(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("FLYBALL_KILLS"))
	if err != nil || kills < 1 {
		t.Skip("FLYBALL_KILLS does not say how often")
	}
	k := newKiller(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	p := startManager(t, plane.Kubeconfig, killFlags...)
	k.create()
	eventually(t, k.complete)
	var window time.Duration    // what a rollout takes
	for range killHistory + 1 { // so that there is as much history as is kept
		begin := time.Now()
		k.rollOut()
		eventually(t, k.complete)
		window = time.Since(begin)
	}
	want := k.settled()
	t.Logf("the outcome of a rollout that is left in peace:\n%s", want)

	midway, all := 0, 0
	for midway < kills && all < 10*kills {
		k.rollOut()
		for again := true; again && midway < kills; again = random.IntN(3) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(window))))
			all++
			if k.complete() != "" {
				midway++
			}
			k.kill(p)
			p = startManager(t, plane.Kubeconfig, killFlags...)
		}
		eventually(t, k.complete)
		eventually(t, func() string {
			if got := k.outcome(); got != want {
				return fmt.Sprintf("after kill %d the outcome is\n%s\nwant\n%s", all, got, want)
			}
			return ""
		})
		k.replay()
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d kills, %d of them before the rollout was complete, in %d rollouts: %d pods created, at most %d "+
		"replicas "+
		"asked for (%d allowed), at most %d pods, at least %d available (%d required)",
		all, midway, k.rollouts, k.seen.created, k.seen.mostAsked, killReplicas+killSurge, k.seen.mostPods,
		k.seen.leastAvailable, killReplicas-killAbsent)

	k.remove()
	time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
	k.kill(p)
	startManager(t, plane.Kubeconfig, killFlags...)
	eventually(t, k.gone)
}

var killFlags = []string{"--leader-elect=false", "--kube-api-qps=-1"}

// killer holds the Deployment that is rolled out, and the recording of what happens to it.
type killer struct {
	t      *testing.T
	client kubernetes.Interface
	record *recording
	seen   history
	// rollouts is how many were asked for.
	rollouts int
}

func newKiller(t *testing.T) *killer {
	t.Helper()
	k := &killer{t: t, client: kubernetes.NewForConfigOrDie(adminConfig(t, plane))}
	if _, err := k.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: killNamespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	startKubelet(t, plane)
	k.record = startRecording(t, k.client, killNamespace)
	k.seen.leastAvailable = killReplicas
	return k
}

func (k *killer) create() {
	k.t.Helper()
	labels := map[string]string{"app": "web"}
	replicas, history := int32(killReplicas), int32(killHistory)
	surge, absent := intstr.FromInt32(killSurge), intstr.FromInt32(killAbsent)
	_, err := k.client.AppsV1().Deployments(killNamespace).Create(k.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, RevisionHistoryLimit: &history, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &absent},
			},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.client.CoreV1().Services(killNamespace).Create(k.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// rollOut asks for another template.
func (k *killer) rollOut() {
	k.t.Helper()
	k.rollouts++
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"rollout":"%d"}}}}}`, k.rollouts)
	if _, err := k.client.AppsV1().Deployments(killNamespace).Patch(k.t.Context(), "web", types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// kill is kill -9.
func (k *killer) kill(p *program) {
	k.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	<-p.ended
	if strings.Contains(p.output(), "DATA RACE") {
		k.t.Errorf("the race detector found something:\n%s", p.output())
	}
}

// complete returns what a finished rollout lacks.
func (k *killer) complete() string {
	d, err := k.client.AppsV1().Deployments(killNamespace).Get(k.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	s := d.Status
	if s.ObservedGeneration != d.Generation || s.UpdatedReplicas != killReplicas || s.Replicas != killReplicas ||
		s.AvailableReplicas != killReplicas {
		return fmt.Sprintf("the Deployment is not complete: %+v", s)
	}
	return ""
}

// outcome is all there is, without what differs by design: names from a hash, addresses, times and versions. Of
// revisions it says how far they are apart.
func (k *killer) outcome() string {
	k.t.Helper()
	ctx, ns, all := k.t.Context(), killNamespace, metav1.ListOptions{}
	d, err1 := k.client.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
	sets, err2 := k.client.AppsV1().ReplicaSets(ns).List(ctx, all)
	pods, err3 := k.client.CoreV1().Pods(ns).List(ctx, all)
	endpoints, err4 := k.client.CoreV1().Endpoints(ns).List(ctx, all)
	endpointSlices, err5 := k.client.DiscoveryV1().EndpointSlices(ns).List(ctx, all)
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			k.t.Fatal(err)
		}
	}
	s := d.Status
	lines := []string{
		fmt.Sprintf("Deployment: %d replicas, %d updated, %d ready, %d available", s.Replicas, s.UpdatedReplicas,
			s.ReadyReplicas, s.AvailableReplicas),
	}
	for _, c := range s.Conditions {
		lines = append(lines, fmt.Sprintf("  %s=%s %s", c.Type, c.Status, c.Reason))
	}
	newest, owners := revisionOf(d), map[types.UID]int{d.UID: 0}
	slices.SortFunc(sets.Items, func(a, b appsv1.ReplicaSet) int { return revisionOf(&b) - revisionOf(&a) })
	for i := range sets.Items {
		set := &sets.Items[i]
		owners[set.UID] = newest - revisionOf(set)
		lines = append(lines,
			fmt.Sprintf("ReplicaSet -%d of %s: wants %d, has %d, %d available", owners[set.UID], ownerOf(set, owners),
				*set.Spec.Replicas, set.Status.Replicas, set.Status.AvailableReplicas))
	}
	var rest []string
	for i := range pods.Items {
		p := &pods.Items[i]
		rest = append(rest,
			fmt.Sprintf("Pod of %s: ready %t, leaving %t", ownerOf(p, owners), podReady(p), p.DeletionTimestamp != nil))
	}
	slices.Sort(rest)
	for _, e := range endpoints.Items {
		for _, subset := range e.Subsets {
			rest = append(rest,
				fmt.Sprintf("Endpoints: %d ready, %d not", len(subset.Addresses), len(subset.NotReadyAddresses)))
		}
	}
	for i := range endpointSlices.Items {
		rest = append(rest, "EndpointSlice: "+describeSlice(&endpointSlices.Items[i]))
	}
	return strings.Join(append(lines, rest...), "\n")
}

// settled is the outcome once it has not changed for a second.
func (k *killer) settled() (last string) {
	k.t.Helper()
	eventually(k.t, func() string {
		before := k.outcome()
		time.Sleep(time.Second)
		if last = k.outcome(); last != before || strings.Contains(last, "leaving true") {
			return "the outcome still changes:\n" + last
		}
		return ""
	})
	return last
}

func describeSlice(s *discoveryv1.EndpointSlice) string {
	ready := 0
	for _, e := range s.Endpoints {
		if *e.Conditions.Ready {
			ready++
		}
	}
	return fmt.Sprintf("%d ready of %d", ready, len(s.Endpoints))
}

// ownerOf is how many revisions ago the owner was new.
func ownerOf(obj metav1.Object, owners map[types.UID]int) string {
	if ref := metav1.GetControllerOf(obj); ref != nil {
		if n, found := owners[ref.UID]; found {
			return fmt.Sprintf("%s -%d", ref.Kind, n)
		}
	}
	return "nobody"
}

func revisionOf(obj metav1.Object) int {
	n, _ := strconv.Atoi(obj.GetAnnotations()["deployment.kubernetes.io/revision"])
	return n
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// replay adds what was recorded to the history and checks it.
func (k *killer) replay() {
	k.t.Helper()
	for _, problem := range k.seen.add(k.record.take()) {
		k.t.Error(problem)
	}
}

func (k *killer) remove() {
	k.t.Helper()
	for _, err := range []error{
		k.client.AppsV1().Deployments(killNamespace).Delete(k.t.Context(), "web", metav1.DeleteOptions{}),
		k.client.CoreV1().Services(killNamespace).Delete(k.t.Context(), "web", metav1.DeleteOptions{}),
	} {
		if err != nil {
			k.t.Fatal(err)
		}
	}
}

// gone returns what is left.
func (k *killer) gone() string {
	ctx, ns, all := context.WithoutCancel(k.t.Context()), killNamespace, metav1.ListOptions{}
	sets, err1 := k.client.AppsV1().ReplicaSets(ns).List(ctx, all)
	pods, err2 := k.client.CoreV1().Pods(ns).List(ctx, all)
	endpoints, err3 := k.client.CoreV1().Endpoints(ns).List(ctx, all)
	endpointSlices, err4 := k.client.DiscoveryV1().EndpointSlices(ns).List(ctx, all)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return err.Error()
		}
	}
	if n := len(sets.Items) + len(pods.Items) + len(endpoints.Items) + len(endpointSlices.Items); n > 0 {
		return fmt.Sprintf("left are %d ReplicaSets, %d pods, %d Endpoints, %d EndpointSlices", len(sets.Items),
			len(pods.Items), len(endpoints.Items), len(endpointSlices.Items))
	}
	return ""
}
