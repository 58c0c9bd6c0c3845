package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/examples/operators/ci/sample"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
)

// TestOperators follows the section "In a cluster" of each operator's README: the image, the kustomization, and an
// object for the operator to work on. Our controllers create the operators' pods.
func TestOperators(t *testing.T) {
	n := start(t, Ours)
	must(t, n.DeployManager(t.Context()))
	t.Run("items", func(t *testing.T) { items(t, n) })
	t.Run("ipam", func(t *testing.T) { ipam(t, n) })
	t.Run("projects", func(t *testing.T) { projects(t, n) })
	t.Run("ci", func(t *testing.T) { ci(t, n) })
}

const operators = "examples/operators"

// deploy loads an operator's image and applies its kustomization.
func deploy(t *testing.T, n *Node, image, kustomization string) {
	t.Helper()
	built, err := Image(t.Context(), image)
	must(t, err)
	must(t, n.Load(t.Context(), built))
	apply(t, n, kustomization)
}

func apply(t *testing.T, n *Node, kustomization string) {
	t.Helper()
	root, err := repository()
	must(t, err)
	must(t, n.Apply(t.Context(), filepath.Join(root, operators, kustomization)))
}

// field waits until a field of an object has that value.
func field(t *testing.T, n *Node, resource schema.GroupVersionResource, name, want string, path ...string) {
	t.Helper()
	c, err := dynamic.NewForConfig(n.Config)
	must(t, err)
	must(t, eventually(t.Context(), resource.Resource+"/"+name, func() error {
		o, err := c.Resource(resource).Namespace(namespaceOf(resource)).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		have, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
		if text := fmt.Sprint(have); err == nil && text != want {
			err = fmt.Errorf("%s is %s, want %s", strings.Join(path, "."), text, want)
		}
		return err
	}))
}

// namespaceOf is empty for the resources of the projects, which have no namespaces.
func namespaceOf(r schema.GroupVersionResource) string {
	if strings.HasSuffix(r.Group, "miloapis.com") {
		return ""
	}
	return metav1.NamespaceDefault
}

// items keeps stock: an item is on its shelf, and its label is a ConfigMap.
func items(t *testing.T, n *Node) {
	deploy(t, n, "items", "items/deploy")
	must(t, n.AwaitDeployment(t.Context(), "items", "items-manager"))
	root, err := repository()
	must(t, err)
	stock, err := os.ReadFile(filepath.Join(root, operators, "items", "stock.yaml"))
	must(t, err)
	must(t, n.Create(t.Context(), "stock.yaml", string(stock)))
	item := schema.GroupVersionResource{Group: "stock.flyball.dev", Version: "v1", Resource: "items"}
	field(t, n, item, "hammer", "Shelved", "status", "phase")
	field(t, n, item, "red-paint", "Registered", "status", "phase") // there is no such category
}

// ipam keeps an address that a pod uses and releases that of a pod that does not exist. There is no Multus: the test
// writes the annotation that Multus would write.
func ipam(t *testing.T, n *Node) {
	apply(t, n, "ipam/manifests/multus")
	deploy(t, n, "ipam-operator", "ipam/manifests")
	must(t, n.AwaitDeployment(t.Context(), "ipam-system", "ipam-operator"))
	status, err := json.Marshal([]multus.NetworkStatus{
		{Name: "default/net", Interface: "net1", IPs: []string{"10.9.0.5"}},
	})
	must(t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "user", Annotations: map[string]string{multus.NetworkStatusAnnotation: string(status)},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: Web[0]}}
	_, err = n.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	must(t, eventually(t.Context(), "the pod does not run", func() error {
		pod, err := n.Client.CoreV1().Pods("default").Get(t.Context(), "user", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	}))
	must(t, n.Create(t.Context(), "the pool", `
apiVersion: whereabouts.cni.cncf.io/v1alpha1
kind: IPPool
metadata: {name: pool}
spec:
  range: 10.9.0.0/24
  allocations:
    "5": {id: c5, podref: default/user, ifname: net1}
    "6": {id: c6, podref: default/gone, ifname: net1}
`))
	field(t, n, schema.GroupVersionResource{
		Group: "whereabouts.cni.cncf.io", Version: "v1alpha1", Resource: "ippools",
	}, "pool", "map[5:map[id:c5 ifname:net1 podref:default/user]]", "spec", "allocations")
}

// projects asks for a control plane for a new Project. Nobody provides one here: the README says that something else
// must.
func projects(t *testing.T, n *Node) {
	deploy(t, n, "project-operator", "projects/manifests")
	must(t, n.AwaitDeployment(t.Context(), "project-system", "project-operator"))
	must(t, n.Create(t.Context(), "the project", `
apiVersion: resourcemanager.miloapis.com/v1alpha1
kind: Project
metadata: {name: shop}
spec: {ownerRef: {kind: Organization, name: acme}}
`))
	field(t, n, schema.GroupVersionResource{
		Group: "infrastructure.miloapis.com", Version: "v1alpha1", Resource: "projectcontrolplanes",
	}, "shop", "shop", "metadata", "name")
}

// ci is ready with the sample's configuration in its volumes, which are made after it is deployed. The node is the hub
// and its build cluster. A file takes the place of GitHub.
func ci(t *testing.T, n *Node) {
	ctx, namespace := t.Context(), "ci"
	apply(t, n, "ci/manifests/build")
	deploy(t, n, "ci-controllers", "ci/manifests")
	_, err := n.Client.AppsV1().Deployments(namespace).Patch(ctx, "ci-controllers", types.JSONPatchType, []byte(
		`[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--github-refs-file=/etc/profiles/refs.yaml"}]`,
	), metav1.PatchOptions{})
	must(t, err)
	request, err := n.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "ci-controllers",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	kubeconfig, err := clientcmd.LoadFromFile(n.Kubeconfig)
	must(t, err)
	kubeconfig.Contexts["app.ci"], kubeconfig.CurrentContext = kubeconfig.Contexts["node"], "app.ci"
	kubeconfig.Contexts["build01"] = kubeconfig.Contexts["node"]
	delete(kubeconfig.Contexts, "node")
	kubeconfig.AuthInfos["admin"].Token = request.Status.Token
	text, err := clientcmd.Write(*kubeconfig)
	must(t, err)
	for name, data := range map[string]map[string]string{
		"ci-controllers-kubeconfigs": {"config": string(text)}, "github-token": {"token": "none"},
	} {
		_, err := n.Client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data,
		}, metav1.CreateOptions{})
		must(t, err)
	}
	dir := t.TempDir()
	must(t, sample.Write(dir))
	for name, pattern := range map[string]string{
		"ci-operator-config": "config/*", "job-config": "jobs/*", "cluster-profiles": "*.yaml",
	} {
		_, err = n.Client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: texts(t, filepath.Join(dir, pattern)),
		}, metav1.CreateOptions{})
		must(t, err)
	}
	must(t, n.AwaitDeployment(ctx, namespace, "ci-controllers"))
}

// texts returns the texts of the files that match a pattern, by their names.
func texts(t *testing.T, pattern string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	must(t, err)
	data := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		must(t, err)
		data[filepath.Base(path)] = string(text)
	}
	return data
}
