package deployed

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/deploy/deploytest"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// adminToken is the token of upstream's user with all permissions.
const adminToken = "admin-token"

// TestManifestsOnTheRealServer: with the permissions of the manifests and no others, the manager does its work. Users
// without permission get neither metrics nor the text of /readyz. If a permission is revoked, /readyz and one log line
// name it; if it is granted again, the manager recovers.
func TestManifestsOnTheRealServer(t *testing.T) {
	plane, err := upstream.Start(t.Context(), upstream.Options{AuthorizationMode: "RBAC", Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin := administrator(t, plane)
	args := admin.apply("../../deploy")
	binary := build(t)
	kubeconfig, err := plane.WriteKubeconfig("flyball-manager", admin.token("flyball-manager"))
	if err != nil {
		t.Fatal(err)
	}

	p := start(t, binary, append(args, "--kubeconfig="+kubeconfig, "--port=18443"))
	p.await("/readyz", "", 200, "ok\n")
	p.await("/readyz", adminToken, 200, "leader: this process")
	p.await("/metrics", "", 401, "a bearer token is needed")
	p.await("/metrics", admin.token("default"), 403, "Forbidden")
	p.await("/metrics", adminToken, 200, `leader_election_master_status{name="flyball-manager"} 1`)
	p.await("/metrics", adminToken, 200, `rest_client_requests_total{code="200"`)
	admin.rollout()
	if text := p.output(); strings.Contains(text, "orbidden") {
		t.Errorf("something was forbidden that is needed:\n%s", text)
	}
	if err := p.stop(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, p.output())
	}

	removed := admin.without("services")
	p = start(t, binary, append(args, "--kubeconfig="+kubeconfig, "--port=18443"))
	const words = `cannot list services at the cluster scope: forbidden: User "system:serviceaccount:kube-system:flyball-manager" cannot list resource "services"`
	p.await("/readyz", adminToken, 503, "[-]informer services: "+words)
	p.await("/readyz", "", 503, "[-]informer services failed: reason withheld\n")
	p.await("/livez", "", 200, "ok\n")
	time.Sleep(20 * time.Second) // for a flood, if there is one
	if n := strings.Count(p.output(), `cannot list resource \"services`); n != 1 {
		t.Errorf("%d lines of the log tell of it, want 1:\n%s", n, p.output())
	}
	admin.update(removed)
	p.await("/readyz", "", 200, "ok\n")
	if err := p.stop(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, p.output())
	}
}

// person is an administrator at work.
type person struct {
	*client.Cluster
	t         *testing.T
	clientset kubernetes.Interface
}

func administrator(t *testing.T, plane *upstream.ControlPlane) *person {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &person{c, t, kubernetes.NewForConfigOrDie(config)}
}

// apply creates the objects of the kustomization, and returns the command line of their Deployment.
func (p *person) apply(kustomization string) (args []string) {
	p.t.Helper()
	objects := deploytest.Render(p.t, kustomization)
	if err := manifest.Install(p.t.Context(), p, objects); err != nil {
		p.t.Fatal(err)
	}
	args, _ = deploytest.Command(p.t, objects)
	return args
}

// token asks for a token of a service account in kube-system, as a kubelet does for a Pod.
func (p *person) token(account string) string {
	p.t.Helper()
	ctx, accounts := p.t.Context(), p.clientset.CoreV1().ServiceAccounts("kube-system")
	_, _ = accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}},
		metav1.CreateOptions{})
	request, err := accounts.CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return request.Status.Token
}

// rollout takes the manifests' own Deployment, and one beside it, through their lives: there is no kubelet, so pods
// stay pending.
func (p *person) rollout() {
	p.t.Helper()
	ctx := p.t.Context()
	p.eventually("two pods of the manager", func() bool { return p.pods("kube-system", "app=flyball-manager") == 2 })
	labels, three := map[string]string{"app": "web"}, int32(3)
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	web.Spec = appsv1.DeploymentSpec{Replicas: &three, Selector: &metav1.LabelSelector{MatchLabels: labels}}
	web.Spec.Template.Labels = labels
	web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "web:1"}}
	if err := p.Create(ctx, web); err != nil {
		p.t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	service.Spec = corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}
	if err := p.Create(ctx, service); err != nil {
		p.t.Fatal(err)
	}
	p.eventually("three pods", func() bool { return p.pods("default", "app=web") == 3 })
	p.eventually("an EndpointSlice", func() bool {
		slices, err := p.clientset.DiscoveryV1().EndpointSlices("default").List(ctx,
			metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		return err == nil && len(slices.Items) > 0
	})
	if err := p.Patch(ctx, web,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`))); err != nil {
		p.t.Fatal(err)
	}
	p.eventually("one pod, and a status that says so", func() bool {
		err := p.Get(ctx, client.ObjectKeyFromObject(web), web)
		return err == nil && p.pods("default", "app=web") == 1 && web.Status.Replicas == 1 &&
			web.Status.ObservedGeneration == web.Generation
	})
}

func (p *person) pods(namespace, selector string) int {
	list, err := p.clientset.CoreV1().Pods(namespace).List(p.t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		p.t.Fatal(err)
	}
	alive := 0
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			alive++
		}
	}
	return alive
}

// without takes a resource out of the manager's ClusterRole, and returns the role as it was.
func (p *person) without(resource string) (before []byte) {
	p.t.Helper()
	roles := p.clientset.RbacV1().ClusterRoles()
	role, err := roles.Get(p.t.Context(), "flyball-manager", metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	if before, err = yaml.Marshal(role.Rules); err != nil {
		p.t.Fatal(err)
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.Resources, resource)
	})
	if _, err := roles.Update(p.t.Context(), role, metav1.UpdateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	return before
}

func (p *person) update(rules []byte) {
	p.t.Helper()
	roles := p.clientset.RbacV1().ClusterRoles()
	role, err := roles.Get(p.t.Context(), "flyball-manager", metav1.GetOptions{})
	if err == nil {
		role.Rules = nil
		if err = yaml.Unmarshal(rules, &role.Rules); err == nil {
			_, err = roles.Update(p.t.Context(), role, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) eventually(what string, happened func() bool) {
	p.t.Helper()
	for range 600 {
		if happened() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.t.Fatalf("a minute without %s", what)
}

func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "flyball")
	command := exec.Command("go", "build", "-o", binary, "./cmd/flyball")
	command.Dir = filepath.Join("..", "..")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build flyball: %v\n%s", err, out)
	}
	return binary
}

// program is a running manager.
type program struct {
	t       *testing.T
	command *exec.Cmd
	ended   chan error
	mu      sync.Mutex
	written bytes.Buffer
}

func start(t *testing.T, binary string, args []string) *program {
	t.Helper()
	p := &program{t: t, command: exec.Command(binary, args...), ended: make(chan error, 1)}
	p.command.Stderr = p
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.command.Process.Kill() })
	go func() { p.ended <- p.command.Wait() }()
	return p
}

// Write takes the log.
func (p *program) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.Write(text)
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

func (p *program) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		return err
	case <-time.After(time.Minute):
		return errors.New("still there after a minute")
	}
}

// await asks until the answer has that code and part.
func (p *program) await(path, token string, code int, part string) {
	p.t.Helper()
	last := ""
	for range 900 {
		got, body, err := ask(p.t.Context(), "https://127.0.0.1:18443"+path, token)
		if err == nil && got == code && strings.Contains(body, part) {
			return
		}
		last = fmt.Sprint(got, " ", body, " ", err)
		time.Sleep(100 * time.Millisecond)
	}
	p.t.Fatalf("%s: want %d %q, last was %s; the log:\n%s", path, code, part, last, p.output())
}

// ask does not verify the server: the certificate was made when the manager started.
func ask(ctx context.Context, url, token string) (int, string, error) {
	c := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}
