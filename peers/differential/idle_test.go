package differential

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// TestIdle: a manager that has nothing to do writes nothing, and neither does one that has restarted. FLYBALL_IDLE is
// how long it watches the idle manager, with 500 Deployments; without it, a few seconds, with 10. The API server counts
// the requests: all that could change something, whether they succeeded or not.
func TestIdle(t *testing.T) {
	idle, deployments := 5*time.Second, 10
	if text := os.Getenv("FLYBALL_IDLE"); text != "" {
		var err error
		if idle, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		deployments = 500
	}
	client := kubernetes.NewForConfigOrDie(adminConfig(t, plane))
	startKubelet(t, plane)
	flags := []string{"--leader-elect=false", "--kube-api-qps=-1"}
	p := startManager(t, plane.Kubeconfig, flags...)
	begin := time.Now()
	idleCreate(t, client, deployments)
	patient(t, 10*time.Minute, func() string { return idleComplete(t, client, deployments) })
	t.Logf("%d Deployments, each with 2 replicas and a Service, are complete after %s", deployments,
		time.Since(begin).Round(time.Second))
	settle(t, client)

	quiet := func(what string, d time.Duration) {
		before := writesOf(t, client)
		time.Sleep(d)
		after := writesOf(t, client)
		n := 0
		for _, key := range slices.Sorted(maps.Keys(after)) {
			if more := after[key] - before[key]; more > 0 {
				t.Errorf("%s: %d × %s", what, more, key)
				n += more
			}
		}
		t.Logf("%s, %s: %d writes", what, d, n)
	}
	quiet("idle", idle)
	if err := p.stop(t); err != nil {
		t.Error(err)
	}
	before := writesOf(t, client)
	p = startManager(t, plane.Kubeconfig, flags...)
	eventually(t, func() string {
		if code, body := get(p.url + "/readyz"); code != 200 {
			return body
		}
		return ""
	})
	quiet("after a restart", min(idle, time.Minute))
	if after := writesOf(t, client); !maps.Equal(before, after) {
		t.Errorf("the restart made %v out of %v", after, before)
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	p = startManager(t, plane.Kubeconfig, flags...)
	quiet("after kill -9", min(idle, time.Minute))
	idleRemove(t, client)
}

const idleNamespace = "idle"

func idleCreate(t *testing.T, client kubernetes.Interface, n int) {
	t.Helper()
	ctx := t.Context()
	if _, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: idleNamespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	replicas := int32(2)
	for i := range n {
		name := fmt.Sprintf("app-%03d", i)
		labels := map[string]string{"app": name}
		if _, err := client.AppsV1().Deployments(idleNamespace).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1"}}},
				},
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CoreV1().Services(idleNamespace).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{
				Selector: labels,
				Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
			},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func idleComplete(t *testing.T, client kubernetes.Interface, n int) string {
	t.Helper()
	list, err := client.AppsV1().Deployments(idleNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	complete := 0
	for i := range list.Items {
		if s := &list.Items[i].Status; s.AvailableReplicas == 2 && s.UpdatedReplicas == 2 {
			complete++
		}
	}
	if complete < n {
		return fmt.Sprintf("%d of %d Deployments are complete", complete, n)
	}
	return ""
}

// idleRemove leaves nothing to the tests that come after this one.
func idleRemove(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx, all := t.Context(), metav1.ListOptions{}
	if err := client.AppsV1().Deployments(idleNamespace).DeleteCollection(ctx, metav1.DeleteOptions{},
		all); err != nil {
		t.Fatal(err)
	}
	services, err := client.CoreV1().Services(idleNamespace).List(ctx, all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range services.Items {
		if err := client.CoreV1().Services(idleNamespace).Delete(ctx, services.Items[i].Name,
			metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patient(t, 5*time.Minute, func() string {
		pods, err1 := client.CoreV1().Pods(idleNamespace).List(ctx, all)
		list, err2 := client.DiscoveryV1().EndpointSlices(idleNamespace).List(ctx, all)
		if err := errors.Join(err1, err2); err != nil {
			return err.Error()
		}
		if len(pods.Items)+len(list.Items) > 0 {
			return fmt.Sprintf("left are %d pods, %d EndpointSlices", len(pods.Items), len(list.Items))
		}
		return ""
	})
}

// settle waits until there was no write for three seconds.
func settle(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	patient(t, 2*time.Minute, func() string {
		before := writesOf(t, client)
		time.Sleep(3 * time.Second)
		if after := writesOf(t, client); !maps.Equal(before, after) {
			return fmt.Sprintf("writes go on: %v", after)
		}
		return ""
	})
}

// patient is eventually with another deadline.
func patient(t *testing.T, limit time.Duration, ask func() string) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for missing := ask(); missing != ""; missing = ask() {
		if time.Now().After(deadline) {
			t.Fatal(missing)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

var requests = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)

// writesOf is how many requests of each kind the API server has answered, reads left out, and what the server itself
// writes: its lease, its events (of another group than everybody else's), and questions about permissions, which are
// posted.
func writesOf(t *testing.T, client kubernetes.Interface) map[string]int {
	t.Helper()
	body, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for lines := bufio.NewScanner(strings.NewReader(string(body))); lines.Scan(); {
		m := requests.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range strings.Split(m[1], ",") {
			if key, value, found := strings.Cut(pair, "="); found {
				labels[key] = strings.Trim(value, `"`)
			}
		}
		read := slices.Contains([]string{"GET", "LIST", "WATCH", "CONNECT"}, labels["verb"])
		if read || labels["resource"] == "leases" || labels["group"] == "events.k8s.io" ||
			strings.HasSuffix(labels["resource"], "reviews") {
			continue
		}
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		counts[fmt.Sprintf("%s %s %s %s", labels["verb"], labels["resource"], labels["subresource"],
			labels["code"])] += int(n)
	}
	if len(counts) == 0 {
		t.Fatal("the API server counts no writes")
	}
	return counts
}
