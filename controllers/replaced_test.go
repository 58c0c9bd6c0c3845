package controllers_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
)

// address is a fixed address at which one server after another answers.
type address struct {
	t      *testing.T
	server atomic.Pointer[localapi.Server]
}

func (a *address) RoundTrip(r *http.Request) (*http.Response, error) {
	return a.server.Load().RESTConfig().Transport.RoundTrip(r)
}

// serve starts a new, empty server at the address, whose lists take a moment. It returns a client of it and the log of
// its requests.
func (a *address) serve() (kubernetes.Interface, *audit.Log) {
	a.t.Helper()
	log := &audit.Log{}
	server, err := localapi.New(localapi.Options{Audit: log, Gate: gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			if r.Verb == "list" {
				time.Sleep(300 * time.Millisecond)
			}
			return gate.Verdict{}
		},
	}})
	if err != nil {
		a.t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		a.t.Fatal(err)
	}
	a.server.Store(server)
	return client, log
}

func (a *address) config() *rest.Config {
	c := a.server.Load().RESTConfig()
	c.Transport = a
	return c
}

// errorLines collects the errors that are logged.
type errorLines struct {
	mu    sync.Mutex
	lines []string
}

func (e *errorLines) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if bytes.HasPrefix(line, []byte("E")) {
		e.lines = append(e.lines, string(line))
	}
	return len(line), nil
}

func deployed(t *testing.T, client kubernetes.Interface, names ...string) {
	t.Helper()
	for _, name := range names {
		labels := map[string]string{"app": name}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image:1"}}},
			},
		}}
		if _, err := client.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// age writes to a server that many times, so that its resource versions can reach those of another.
func age(ctx context.Context, client kubernetes.Interface, writes int) error {
	maps := client.CoreV1().ConfigMaps("default")
	m, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "age"}}, metav1.CreateOptions{})
	for i := 0; i < writes && err == nil; i++ {
		m.Data = map[string]string{"n": fmt.Sprint(i)}
		m, err = maps.Update(ctx, m, metav1.UpdateOptions{})
	}
	return err
}

// TestServerReplacedByAnEmptyOne: the API server ends, and an empty one takes its place after up to a minute. Some of
// the Deployments are created again under their names. In every second round the new server's resource versions have
// passed those of the first before anybody connects again; in the others they pass them later.
func TestServerReplacedByAnEmptyOne(t *testing.T) {
	said := map[string]int{}
	for round := range 20 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { replaceServer(t, round, said) })
		})
	}
	if said["history"] == 0 {
		t.Errorf("readiness never said that the history is another: %v", said)
	}
}

func replaceServer(t *testing.T, round int, said map[string]int) {
	random := rand.New(rand.NewPCG(1, uint64(round)))
	at := &address{t: t}
	first, _ := at.serve()
	old := at.server.Load()
	m, err := manager.New(at.config(), manager.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := controllers.Add(m, controllers.Options{}); err != nil {
		t.Fatal(err)
	}
	logged := &errorLines{}
	ctx, stop := context.WithCancel(
		klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(logged)))),
	)
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	time.Sleep(10 * time.Second)
	deployed(t, first, "a", "b", "c", "d", "e")
	if err := age(ctx, first, 200); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if err := m.Ready(); err != nil {
		t.Fatal("before:", err)
	}

	if err := old.Close(); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Duration(random.Int64N(int64(time.Minute))))
	second, log := at.serve()
	deployed(t, second, "a", "b", "c")
	aged := make(chan error, 1)
	go func() { aged <- age(ctx, second, 500) }()
	if round%2 == 0 {
		if err := <-aged; err != nil {
			t.Fatal(err)
		}
	}
	logged.mu.Lock()
	logged.lines = nil
	logged.mu.Unlock()
	for range 1500 { // 150 s
		time.Sleep(100 * time.Millisecond)
		if err := m.Ready(); err != nil && strings.Contains(err.Error(), "history") {
			said["history"]++
		}
	}
	synctest.Wait()
	if n := len(logged.lines); n > 50 { // ten keys fail two or three times; a fight causes as many a second
		t.Errorf("%d errors: %s", n, logged.lines)
	}
	if err := m.Ready(); err != nil {
		t.Errorf("after: %v", err)
	}
	settled(t, m, second)
	writes := slices.DeleteFunc(log.Writes(),
		func(e audit.Entry) bool { return e.Resource == "configmaps" || e.Resource == "events" })
	if len(writes) > 100 { // 23 if nothing is to be tidied up, at most 67 so far; a fight causes as many a second
		t.Errorf("%d writes to the second server", len(writes))
	}
	stop()
	if err := <-done; err != nil {
		t.Error("run:", err)
	}
	if err := at.server.Load().Close(); err != nil {
		t.Error(err)
	}
}

// settled compares the caches with the server.
func settled(t *testing.T, m *manager.Manager, server kubernetes.Interface) {
	t.Helper()
	deployments, err1 := informer.For[*appsv1.Deployment](m.Informers())
	sets, err2 := informer.For[*appsv1.ReplicaSet](m.Informers())
	there, err3 := server.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
	setsThere, err4 := server.AppsV1().ReplicaSets("").List(t.Context(), metav1.ListOptions{})
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var cached, wanted []string
	for d := range deployments.All() {
		cached = append(cached, d.Name+" "+string(d.UID))
	}
	for rs := range sets.All() {
		cached = append(cached, rs.Name+" "+string(rs.UID))
	}
	for _, d := range there.Items {
		wanted = append(wanted, d.Name+" "+string(d.UID))
	}
	for _, rs := range setsThere.Items {
		wanted = append(wanted, rs.Name+" "+string(rs.UID))
	}
	slices.Sort(cached)
	slices.Sort(wanted)
	if !slices.Equal(cached, wanted) || len(setsThere.Items) != 3 {
		t.Errorf("the caches hold %q, the server %q", cached, wanted)
	}
}
