package localapi_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// A server in the process, and an ordinary client of it.
func ExampleNew() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, maps := context.Background(), client.CoreV1().ConfigMaps("default")

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"color": "blue"}}
	_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	fmt.Println("create:", err)
	_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	fmt.Println("create:", err)
	list, err := maps.List(ctx, metav1.ListOptions{})
	fmt.Println("list:", len(list.Items), list.Items[0].Data["color"], err)
	// Output:
	// create: <nil>
	// create: configmaps "settings" already exists
	// list: 1 blue <nil>
}

// A gate that lets one answer get lost: the write happened, the client does not know.
func ExampleOptions_gate() {
	lost := false
	log := &audit.Log{}
	server, err := localapi.New(localapi.Options{
		Audit: log,
		Gate: gate.Funcs{OnAnswer: func(_ context.Context, r *gate.Request, _ gate.Answer) gate.Verdict {
			if r.Verb == "create" && !lost {
				lost = true
				return gate.Verdict{Action: gate.Drop}
			}
			return gate.Verdict{}
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
	_, err = client.CoreV1().ConfigMaps("default").Create(context.Background(), cm, metav1.CreateOptions{})
	fmt.Println("first attempt failed:", err != nil)
	_, err = client.CoreV1().ConfigMaps("default").Create(context.Background(), cm, metav1.CreateOptions{})
	fmt.Println("second attempt: already exists:", apierrors.IsAlreadyExists(err))
	for _, e := range log.Entries(nil) {
		fmt.Println(e, e.Lost)
	}
	// Output:
	// first attempt failed: true
	// second attempt: already exists: true
	// create configmaps default/settings 201 true
	// create configmaps default/settings 409 false
}

// failer is a test, as far as an example can show one.
type failer struct{ cleanups []func() }

func (f *failer) Helper()                           {}
func (f *failer) Cleanup(c func())                  { f.cleanups = append(f.cleanups, c) }
func (f *failer) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (f *failer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// One line gives a test a server with objects in it, and says afterwards what was done to them.
func ExampleNewTest() {
	t := &failer{} // in a test: its t
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "team"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	server := localapi.NewTest(t, pod)
	client := kubernetes.NewForConfigOrDie(server.RESTConfig())

	got, err := client.CoreV1().Pods("team").Get(context.Background(), "web-1", metav1.GetOptions{})
	fmt.Println(got.Status.Phase, err)
	err = client.CoreV1().Pods("team").Delete(context.Background(), "web-1", metav1.DeleteOptions{})
	fmt.Println(server.Audit().Writes(), err)
	for _, c := range t.cleanups {
		c()
	}
	// Output:
	// Running <nil>
	// [delete pods team/web-1 200] <nil>
}

// A rule makes the second update of a kind fail with a conflict.
func ExampleTest_Intercept() {
	t := &failer{} // in a test: its t
	server := localapi.NewTest(t, configMap("a"))
	conflict := apierrors.NewConflict(corev1.Resource("configmaps"), "a", errors.New("somebody was faster"))
	server.Intercept(localapi.Rule{Verb: "update", Resource: "configmaps", Nth: 2, Err: conflict})

	maps := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().ConfigMaps("default")
	for range 3 {
		_, err := maps.Update(context.Background(), configMap("a", "k", "v"), metav1.UpdateOptions{})
		fmt.Println(err)
	}
	server.AssertNoWrites(func() {
		_, _ = maps.Get(context.Background(), "a", metav1.GetOptions{})
		_ = maps.Delete(context.Background(), "b", metav1.DeleteOptions{})
	})
	for _, c := range t.cleanups {
		c()
	}
	// Output:
	// <nil>
	// Operation cannot be fulfilled on configmaps "a": somebody was faster
	// <nil>
	// a write where there should be none: delete configmaps default/b 404
}

// A test with roles: what it may not do, it is told.
func ExampleNewTestWith() {
	t := &failer{} // in a test: its t
	server := localapi.NewTestWith(t, localapi.Options{RBAC: true}, configMap("a"))
	client := kubernetes.NewForConfigOrDie(server.RESTConfigFor(auth.ServiceAccount("default", "operator")))
	err := client.CoreV1().ConfigMaps("default").Delete(context.Background(), "a", metav1.DeleteOptions{})
	fmt.Println(err)
	for _, c := range t.cleanups {
		c()
	}
	// Output:
	// configmaps "a" is forbidden: User "system:serviceaccount:default:operator" cannot delete resource "configmaps" in API group "" in the namespace "default"
}
