package differential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/peers/bench/cluster"
	"github.com/flyball-dev/flyball/peers/upstream"
)

func adminConfig(t *testing.T, on *upstream.ControlPlane) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", on.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // Endpoints are deprecated, and what one of the controllers is about
	return config
}

// startKubelet runs the fake kubelet until the test ends.
func startKubelet(t *testing.T, on *upstream.ControlPlane) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	config, o := adminConfig(t, on), kubelet.Options{Delay: 20 * time.Millisecond, PodsPerNode: 10_000}
	go func() { ended <- cluster.RunKubelet(ctx, config, o) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the fake kubelet: %v", err)
		}
	})
}

// TestManagerConverges: one Deployment and one Service on the real API server come to ready Endpoints, a rollout
// replaces the pods, deletion collects everything, and SIGTERM ends the process with 0.
func TestManagerConverges(t *testing.T) {
	startKubelet(t, plane)
	p := startManager(t, plane.Kubeconfig, "--leader-elect=false", "--kube-api-qps=-1")
	life(t, plane)
	if err := p.stop(t); err != nil {
		t.Errorf("after SIGTERM the manager ended with %v", err)
	}
	if strings.Contains(p.output(), "DATA RACE") {
		t.Error("the race detector found something")
	}
}

// TestManagerBesideKubeControllerManager is the walk-through for kind, on a bare control plane:
// kube-controller-manager with the flag that the documented cluster configuration gives it, our manager with the four
// controllers that it leaves out.
func TestManagerBesideKubeControllerManager(t *testing.T) {
	config, err := os.ReadFile("../../docs/kind/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`controllers: "(.*)"`).FindSubmatch(config)
	if flag == nil {
		t.Fatal("the cluster configuration does not set the controllers flag")
	}
	kind, err := upstream.Start(t.Context(),
		upstream.Options{Controllers: strings.Split(string(flag[1]), ","), Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kind.Stop(); err != nil {
			t.Error(err)
		}
	})
	startKubelet(t, kind)
	p := startManager(t, kind.Kubeconfig, "--controllers=deployment,replicaset,endpoint,endpointslice")
	life(t, kind)
	if err := p.stop(t); err != nil {
		t.Errorf("after SIGTERM the manager ended with %v", err)
	}
}

// life is that of a Deployment with a Service, from nothing to nothing.
func life(t *testing.T, on *upstream.ControlPlane) {
	t.Helper()
	const ns = "default"
	ctx, client := t.Context(), kubernetes.NewForConfigOrDie(adminConfig(t, on))
	labels := map[string]string{"app": "web"}
	replicas := int32(3)
	d, err := client.AppsV1().Deployments(ns).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1.28"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Services(ns).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	complete := func() string {
		if d, err = client.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.UpdatedReplicas != 3 || s.Replicas != 3 ||
			s.AvailableReplicas != 3 {
			return fmt.Sprintf("the Deployment is not complete: %+v", s)
		}
		e, err := client.CoreV1().Endpoints(ns).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if len(e.Subsets) != 1 || len(e.Subsets[0].Addresses) != 3 || len(e.Subsets[0].NotReadyAddresses) != 0 {
			return fmt.Sprintf("the Endpoints are not three ready addresses: %+v", e.Subsets)
		}
		list, err := client.DiscoveryV1().EndpointSlices(ns).List(ctx,
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		if err != nil {
			return err.Error()
		}
		if len(list.Items) != 1 || describeSlice(&list.Items[0]) != "3 ready of 3" {
			return fmt.Sprintf("the EndpointSlices are not three ready endpoints: %+v", list.Items)
		}
		return ""
	}
	eventually(t, complete)
	d.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
	if _, err := client.AppsV1().Deployments(ns).Update(ctx, d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, complete)
	if err := client.AppsV1().Deployments(ns).Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Services(ns).Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		pods, err1 := client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		sets, err2 := client.AppsV1().ReplicaSets(ns).List(ctx, metav1.ListOptions{})
		list, err3 := client.DiscoveryV1().EndpointSlices(ns).List(ctx,
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		_, err4 := client.CoreV1().Endpoints(ns).Get(ctx, "web", metav1.GetOptions{})
		if err := errors.Join(err1, err2, err3); err != nil {
			return err.Error()
		}
		if len(pods.Items)+len(sets.Items)+len(list.Items) > 0 || err4 == nil {
			return fmt.Sprintf("left are %d pods, %d ReplicaSets, %d EndpointSlices, the Endpoints: %t",
				len(pods.Items), len(sets.Items), len(list.Items), err4 == nil)
		}
		return ""
	})
}

// TestManagerNamesWhatIsForbidden: if the user may not list pods, /readyz and the log name the verb, the resource and
// the user, once and not in a flood. When the permission is granted, the manager goes on by itself.
func TestManagerNamesWhatIsForbidden(t *testing.T) {
	ctx, client := t.Context(), kubernetes.NewForConfigOrDie(adminConfig(t, plane))
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{APIGroups: []string{""}, Resources: []string{"services", "endpoints", "events"}, Verbs: []string{"*"}},
	}}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "alice"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "alice"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := plane.WriteKubeconfig("alice", aliceToken)
	if err != nil {
		t.Fatal(err)
	}
	p := startManager(t, kubeconfig, "--leader-elect=false", "--controllers=deployment,replicaset,endpoint")
	const forbidden = `User "alice" cannot list resource "pods" in API group "" at the cluster scope`
	var code int
	eventually(t, func() string {
		var body string
		if code, body = get(p.url + "/readyz"); !strings.Contains(body, forbidden) {
			return fmt.Sprintf("/readyz says %d %q", code, body)
		}
		return ""
	})
	if code == http.StatusOK {
		t.Errorf("/readyz is %d while pods cannot be listed", code)
	}
	if code, body := get(p.url + "/livez"); code != http.StatusOK {
		t.Errorf("/livez is %d %q: a missing permission must not restart the process", code, body)
	}
	time.Sleep(5 * time.Second) // several retries
	if n := strings.Count(p.output(), "cannot list pods"); n < 1 || n > 2 {
		t.Errorf("the log says %d times that pods cannot be listed", n)
	}
	role.Rules = append(role.Rules,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}})
	if _, err := client.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if code, body := get(p.url + "/readyz"); code != http.StatusOK {
			return fmt.Sprintf("/readyz stays %d %q after the permission was granted", code, body)
		}
		return ""
	})
	if err := p.stop(t); err != nil {
		t.Errorf("after SIGTERM the manager ended with %v", err)
	}
}

// TestManagerWithoutServer: a server that is not there is named, and the process ends.
func TestManagerWithoutServer(t *testing.T) {
	p := startManager(t, plane.Kubeconfig, "--leader-elect=false", "--master=https://127.0.0.1:1")
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the manager still runs")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	lines := strings.Split(strings.TrimSpace(p.output()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "cannot reach https://127.0.0.1:1") ||
		!strings.Contains(last, "connection refused") {
		t.Errorf("the last line is %q", last)
	}
}

func get(url string) (int, string) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(body)
}
