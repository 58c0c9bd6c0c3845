package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/deploy/deploytest"
	"github.com/flyball-dev/flyball/internal/kit"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/rbac"
)

// TestManifestsGrantWhatIsCalled runs the controllers of deploy/manager.yaml through everything that they do, and
// compares the requests they sent with the role that is shipped: it grants no less and no more. FLYBALL_UPDATE=1
// writes it.
func TestManifestsGrantWhatIsCalled(t *testing.T) {
	kit.Guard(t)
	const selection = "deployment,replicaset,endpoint,endpointslice,endpointslicemirroring"
	objects := deploytest.Render(t, manifests)
	if args, _ := deploytest.Command(t, objects); !slices.Contains(args, "--controllers="+selection) {
		t.Errorf("deploy/manager.yaml does not run --controllers=%s, but %q", selection, args)
	}
	recorder := rbac.NewRecorder()
	synctest.Test(t, func(t *testing.T) { playEverything(t, recorder, strings.Split(selection, ",")) })
	got := recorder.ClusterRole("flyball-manager", "leases")
	if os.Getenv("FLYBALL_UPDATE") != "" {
		role, err := yaml.Marshal(got)
		if err == nil {
			err = os.WriteFile("../../deploy/role.yaml", role, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := manifest.ReadFiles([]string{"../../deploy/role.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want rbacv1.ClusterRole
	find(t, files, "ClusterRole", &want)
	if diff := cmp.Diff(want.Rules, got.Rules); diff != "" {
		t.Errorf("role.yaml (-) grants something else than is called (+); FLYBALL_UPDATE=1 writes it anew:\n%s", diff)
	}
	var lease rbacv1.Role
	find(t, objects, "Role", &lease)
	if diff := cmp.Diff(lease.Rules, recorder.LeaseRole(lease.Name, lease.Namespace).Rules); diff != "" {
		t.Errorf("the Role of the lease in manager.yaml (-) grants something else than is called (+):\n%s", diff)
	}
}

// manifests is the folder of the kustomization.
const manifests = "../../deploy"

// TestManifestIsRestricted holds the Deployment to the security checklist, and the policy and the command line to it.
func TestManifestIsRestricted(t *testing.T) {
	kit.Guard(t)
	objects := deploytest.Render(t, manifests)
	deploytest.Restricted(t, objects)
	var d appsv1.Deployment
	find(t, objects, "Deployment", &d)
	port := d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort
	var allowed networkingv1.NetworkPolicy
	find(t, objects, "NetworkPolicy", &allowed)
	if open := allowed.Spec.Ingress[0].Ports[0].Port.IntVal; open != port ||
		!maps.Equal(allowed.Spec.PodSelector.MatchLabels, d.Spec.Selector.MatchLabels) {
		t.Errorf("the policy is about port %d of %v", open, allowed.Spec.PodSelector)
	}
	args, _ := deploytest.Command(t, objects)
	f := newManagerFlags()
	set := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	if f.add(set); set.Parse(args[1:]) != nil || f.validate(set) != nil {
		t.Errorf("the command line is not understood: %q", args)
	}
	if o := f.options(); !o.Serving.Review || !o.LeaderElection.Enabled ||
		o.LeaderElection.Namespace != d.Namespace || !strings.HasSuffix(o.HealthAddr, fmt.Sprintf(":%d", port)) {
		t.Errorf("served at %s as %+v, elected as %+v", o.HealthAddr, o.Serving, o.LeaderElection)
	}
}

// program is flyball manager, as it is deployed. It works when it has made the pods of its own Deployment.
var program = deploytest.Program{
	Manifests: manifests,
	Run: func(ctx context.Context, args []string, stderr io.Writer) error {
		if code := run(ctx, args, stderr, stderr); code != 0 {
			return fmt.Errorf("exit code %d", code)
		}
		return nil
	},
	Does: func(t *testing.T, c *deploytest.Cluster) {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			var pods corev1.PodList
			if err := c.Admin.List(t.Context(), &pods, client.MatchingLabels{"app": "flyball-manager"}); err != nil {
				t.Fatal(err)
			}
			if len(pods.Items) == 2 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("a minute without two pods: %v", pods.Items)
			}
		}
	},
}

func TestDeployed(t *testing.T) {
	kit.Guard(t)
	program.Works(t)
}

func TestDeployedElsewhere(t *testing.T) {
	kit.Guard(t)
	p := program
	p.Manifests = "testdata/elsewhere"
	p.Works(t)
}

func TestImage(t *testing.T) {
	if os.Getenv("FLYBALL_IMAGES") == "" {
		kit.Guard(t)
	}
	image := deploytest.Image(t, manifests)
	if out, code := deploytest.Contained(t, image, "version"); code != 0 ||
		!strings.HasPrefix(out, "flyball "+deploytest.Version(t)+"\n") {
		t.Errorf("version: exit code %d, %q", code, out)
	}
	if out, code := deploytest.Contained(t, image, "manager"); code != 2 ||
		!strings.HasPrefix(out, "flyball: there is no kubeconfig") {
		t.Errorf("without a cluster: exit code %d, %q", code, out)
	}
	program.WorksInContainer(t, image)
}

// find reads the first object of a kind.
func find(t *testing.T, objects []manifest.Object, kind string, into any) {
	t.Helper()
	if err := manifest.Find(objects, kind, into); err != nil {
		t.Fatal(err)
	}
}

// playEverything makes the controllers send each kind of request that they ever send.
func playEverything(t *testing.T, recorder *rbac.Recorder, selection []string) {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(server.RESTConfig())
	config.Wrap(recorder.Wrap)
	o := manager.Options{LeaderElection: manager.LeaderElection{Enabled: true, Name: "flyball-manager"}}
	m, err := manager.New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := controllers.Add(m, controllers.Options{Selection: selection}); err != nil {
		t.Fatal(err)
	}
	nodes, err := manager.New(server.RESTConfig(), manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	addKubelet(t, nodes)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 2)
	for _, m := range []*manager.Manager{nodes, m} {
		go func() { done <- m.Run(ctx) }()
	}
	c := kubernetes.NewForConfigOrDie(server.RESTConfig())
	play(t, c)
	stop()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

func addKubelet(t *testing.T, m *manager.Manager) {
	t.Helper()
	k, err := kubelet.New(m.GetClient(), m.Informers(), kubelet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Add(k); err != nil {
		t.Fatal(err)
	}
}

// play is a life of applications: made, rolled out, scaled, adopted, released, removed.
func play(t *testing.T, c kubernetes.Interface) {
	ctx := t.Context()
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
	}
	labels := map[string]string{"app": "web"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web:1"}}},
	}
	three, one := int32(3), int32(1)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	d.Spec = appsv1.DeploymentSpec{
		Replicas: &three, RevisionHistoryLimit: &one,
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	service.Spec = corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}
	_, err := c.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{})
	step(err)
	_, err = c.AppsV1().Deployments("default").Create(ctx, d, metav1.CreateOptions{})
	step(err)
	for _, image := range []string{"web:2", "web:3", "web:4"} { // more than the history keeps
		_, err = c.AppsV1().Deployments("default").Patch(ctx, "web", "application/strategic-merge-patch+json",
			[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"`+image+`"}]}}}}`),
			metav1.PatchOptions{})
		step(err)
	}
	orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Labels: labels}, Spec: template.Spec}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "orphan", Labels: map[string]string{"app": "web", "orphan": "yes"}},
	}
	set.Spec = appsv1.ReplicaSetSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: set.Labels},
		Template: template,
	}
	set.Spec.Template.Labels = set.Labels
	orphan.Labels = set.Labels
	_, err = c.CoreV1().Pods("default").Create(ctx, orphan, metav1.CreateOptions{})
	step(err)
	_, err = c.AppsV1().ReplicaSets("default").Create(ctx, set, metav1.CreateOptions{})
	step(err)
	stale := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv6}
	stale.Name, stale.Labels = "web-v6", map[string]string{
		discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io",
	}
	_, err = c.DiscoveryV1().EndpointSlices("default").Create(ctx, stale, metav1.CreateOptions{})
	step(err)
	_, err = c.AppsV1().Deployments("default").Patch(ctx, "web", "application/strategic-merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"deprecated.deployment.rollback.to":"3"}}}`), metav1.PatchOptions{})
	step(err)
	playCustomEndpoints(t, c, step)
	step(c.CoreV1().Services("default").Delete(ctx, "web", metav1.DeleteOptions{}))
	step(c.AppsV1().Deployments("default").Delete(ctx, "web", metav1.DeleteOptions{}))
}

// playCustomEndpoints is a life of Endpoints that are written by hand, and mirrored.
func playCustomEndpoints(t *testing.T, c kubernetes.Interface, step func(error)) {
	ctx := t.Context()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	service.Spec.Ports = []corev1.ServicePort{{Port: 5432}}
	_, err := c.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{})
	step(err)
	//lint:ignore SA1019 What the controller mirrors is deprecated.
	ep := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	//lint:ignore SA1019 As above.
	ep.Subsets = []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.7"}}}}
	_, err = c.CoreV1().Endpoints("default").Create(ctx, ep, metav1.CreateOptions{})
	step(err)
	step(c.CoreV1().Services("default").Delete(ctx, "db", metav1.DeleteOptions{}))
}
