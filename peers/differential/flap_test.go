package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// flapRate is how many pods become ready, or stop to be, in a second.
	flapRate = 100
	// flapFor is how long.
	flapFor = time.Minute
	// flapNamespace holds the pods and the Service.
	flapNamespace = "flap"
)

// TestFlap prints what it costs to keep the Endpoints of one Service whose FLYBALL_FLAP pods flap: a hundred a
// second, one after the other, become ready or stop to be. The Endpoints controller is alone,
// kube-controller-manager's or ours. It asserts that both come to the same end.
func TestFlap(t *testing.T) {
	n := size(t, "FLYBALL_FLAP")
	buildWithoutRace(t)
	rows := []string{
		fmt.Sprintf(
			"| %d pods, %d changes a second for %s | syncs a second | writes of Endpoints | CPU | outside HTTP and "+
				"TLS "+
				"| peak heap | peak resident | CPU a change | right after |", n, flapRate, flapFor,
		),
		"|---|---|---|---|---|---|---|---|---|",
	}
	for _, l := range limits(t) {
		for _, ours := range []bool{false, true} {
			rows = append(rows, flap(t, n, ours, l))
		}
	}
	report(rows)
}

// flap runs one side and returns its row.
func flap(t *testing.T, n int, ours bool, l limit) string {
	t.Helper()
	s := startSubject(t, ours, []string{"endpoint"}, l)
	defer s.stop(t)
	queue := "endpoint"
	if ours {
		queue = "endpoints-controller"
	}
	f := &flapper{subject: s, ready: make([]bool, n)}
	f.create(t)
	f.wait(t)

	syncs := fmt.Sprintf("workqueue_work_duration_seconds_count{name=%q}", queue)
	before, wrote := s.metric(t, syncs), s.calls(t)["update"]
	s.begin(t)
	begin := time.Now()
	made := f.flap(t)
	took := time.Since(begin)
	late := f.wait(t)
	c := s.end(t)
	synced := float64(s.metric(t, syncs) - before)
	return fmt.Sprintf("| %s, %s | %.1f | %d | %s | %s | %s |", s.name, l, synced/took.Seconds(),
		c.calls["update"]-wrote, c.cells(),
		(c.cpu / time.Duration(made)).Round(10*time.Microsecond), late.Round(100*time.Millisecond))
}

// flapper are the pods.
type flapper struct {
	*subject
	ready []bool // by pod
}

func podNumber(i int) string { return fmt.Sprintf("pod-%d", i) }

// create makes the Service, and pods on a node, all ready.
func (f *flapper) create(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	if _, err := f.client.CoreV1().Namespaces().Create(ctx, namespace(flapNamespace),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	numbers := make([]int, len(f.ready))
	for i := range numbers {
		numbers[i] = i
	}
	err := inParallel(numbers, func(i int) error {
		pod := barePod(podNumber(i), map[string]string{"app": "web"})
		pod.Spec.NodeName = nodeName
		if _, err := f.client.CoreV1().Pods(flapNamespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
		ip := fmt.Sprintf("10.%d.%d.%d", 64+i/62500, i/250%250, i%250+1)
		return f.report(ctx, i, corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.client.CoreV1().Services(flapNamespace).Create(ctx, service("web"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// report changes a pod's readiness, and what else is in its status.
func (f *flapper) report(ctx context.Context, i int, status corev1.PodStatus) error {
	f.ready[i] = !f.ready[i]
	status.Conditions = conditions(f.ready[i])
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = f.client.CoreV1().Pods(flapNamespace).Patch(ctx, podNumber(i), types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return err
}

// flap changes the pods in turn, at flapRate, and returns how many changes it made. It says when the machine cannot
// keep up.
func (f *flapper) flap(t *testing.T) int {
	t.Helper()
	total := int(flapFor.Seconds()) * flapRate
	numbers := make([]int, total)
	for i := range numbers {
		numbers[i] = i
	}
	begin := time.Now()
	err := inParallel(numbers, func(i int) error {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / flapRate)))
		return f.report(t.Context(), i*7919%len(f.ready), corev1.PodStatus{}) // a prime: neighbours are far apart
	})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > flapFor*11/10 {
		fmt.Printf("%s: the changes took %s, not %s: the machine is too slow for this rate\n", f.name,
			took.Round(time.Second), flapFor)
	}
	return total
}

// wait returns when the Endpoints hold the addresses of the ready pods, or of as many as fit, and how long that took.
func (f *flapper) wait(t *testing.T) time.Duration {
	t.Helper()
	begin := time.Now()
	want := map[string]bool{}
	for i, ready := range f.ready {
		if ready {
			want[podNumber(i)] = true
		}
	}
	const most = 1000
	patient(t, 5*time.Minute, func() string {
		e, err := f.client.CoreV1().Endpoints(flapNamespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		n := 0
		for _, s := range e.Subsets {
			n += len(s.Addresses)
			if slices.ContainsFunc(s.Addresses,
				func(a corev1.EndpointAddress) bool { return !want[a.TargetRef.Name] }) {
				return "the Endpoints hold a pod that is not ready"
			}
		}
		if n != min(len(want), most) {
			return fmt.Sprintf("the Endpoints hold %d ready pods of %d", n, len(want))
		}
		return ""
	})
	return time.Since(begin)
}
