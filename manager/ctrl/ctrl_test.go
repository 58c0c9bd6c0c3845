package ctrl_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// Greeter greets ConfigMaps.
type Greeter struct {
	kubernetes.Interface
	greeted func()
}

// Reconcile implements ctrl.Reconciler.
func (g *Greeter) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	cm, err := g.CoreV1().ConfigMaps(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
	if err != nil {
		return ctrl.Result{}, err
	}
	fmt.Println("hello,", cm.Name)
	g.greeted()
	return ctrl.Result{}, nil
}

// SetupWithManager adds the controller to the manager.
func (g *Greeter) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(g)
}

// A reconciler with SetupWithManager, as scaffolded projects have it.
func ExampleNewManager() {
	server, err := localapi.New(localapi.Options{NoKubernetesService: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	mgr, err := ctrl.NewManager(server.RESTConfig(), ctrl.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	clients := kubernetes.NewForConfigOrDie(mgr.GetConfig())
	if err := (&Greeter{Interface: clients, greeted: stop}).SetupWithManager(mgr); err != nil {
		fmt.Println(err)
		return
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "world"}}
	if _, err := clients.CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("run:", mgr.Run(ctx))
	// Output:
	// hello, world
	// run: <nil>
}

// Complete reports everything that is missing.
func ExampleNewControllerManagedBy() {
	fmt.Println(ctrl.NewControllerManagedBy(nil).Named("x").Complete(&Greeter{}))
	// Output:
	// build controller x: ControllerManagedBy: the manager is nil; make one with manager.New
	// nothing would ever be reconciled: call For(&Kind{})
}

func TestGetConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	t.Setenv("KUBECONFIG", path)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("HOME", t.TempDir())
	if _, err := ctrl.GetConfig(); err == nil {
		t.Error("a config out of nothing")
	}
	content := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}],"users":[{"name":"c","user":{}}]}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := ctrl.GetConfig()
	if err != nil || config.Host != "http://127.0.0.1:1" {
		t.Errorf("%+v, %v", config, err)
	}
	ctx := ctrl.LoggerInto(t.Context(), ctrl.LoggerFrom(t.Context()).WithValues("k", "v"))
	if ctx == t.Context() {
		t.Error("the logger was not put in")
	}
}
