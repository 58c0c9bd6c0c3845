package purge_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/projects/purge"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cluster"
)

func meta(namespace, name string, finalizers ...string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers}
}

// passes makes up to some passes and returns what each found.
func passes(t *testing.T, server *localapi.Test, o purge.Options, most int) (found []string) {
	t.Helper()
	for range most {
		left, err := purge.Pass(t.Context(), server.RESTConfig(), o)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("%d+%d", left.Namespaces, left.Objects))
		if left.None() {
			break
		}
	}
	return found
}

func TestABareServerIsEmptied(t *testing.T) {
	server := localapi.NewTestWith(t, localapi.Options{Namespaces: []string{"team", "empty"}},
		&corev1.ConfigMap{ObjectMeta: meta("team", "a")}, &corev1.Secret{ObjectMeta: meta("team", "a")},
		&corev1.ConfigMap{ObjectMeta: meta("default", "b")},
		&corev1.ConfigMap{ObjectMeta: meta("kube-system", "system")},
		&corev1.ServiceAccount{ObjectMeta: meta("default", "default")},
		&corev1.ConfigMap{ObjectMeta: meta("default", "kube-root-ca.crt")},
		&corev1.Pod{
			ObjectMeta: meta("team", "p"),
			Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	)
	// The pod is given its time, which nobody takes.
	found := passes(t, server, purge.Options{}, 4)
	if got := strings.Join(found, " "); got != "2+4 2+1 1+1 1+1" {
		t.Errorf("passes found %s", got)
	}
	found = passes(t, server, purge.Options{Force: true}, 4)
	if got := strings.Join(found, " "); got != "1+1 1+0 0+0" {
		t.Errorf("by force, passes found %s", got)
	}
	c, err := client.New(server.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var maps corev1.ConfigMapList
	if err := c.List(t.Context(), &maps); err != nil || len(maps.Items) != 1 {
		t.Errorf("config maps are left: %v, %v; want that of the API server", maps.Items, err)
	}
}

func TestFinalizersAreTakenOffByForceOnly(t *testing.T) {
	server := localapi.NewTestWith(t, localapi.Options{Namespaces: []string{"team"}},
		&corev1.ConfigMap{ObjectMeta: meta("team", "a", "example.com/wait")})
	if got := strings.Join(passes(t, server, purge.Options{}, 3), " "); got != "1+1 1+1 1+1" {
		t.Errorf("passes found %s", got)
	}
	left, err := purge.Pass(t.Context(), server.RESTConfig(), purge.Options{})
	if err != nil || left.String() != "1 namespaces and 1 objects, like namespace team" {
		t.Errorf("left: %s, %v", left, err)
	}
	if got := strings.Join(passes(t, server, purge.Options{Force: true}, 5), " "); got != "1+1 1+0 0+0" {
		t.Errorf("by force, passes found %s", got)
	}
}

// Where there is a namespace controller, and a root CA is published, the two do not fight.
func TestACompleteClusterIsEmptied(t *testing.T) {
	server := localapi.NewTestWith(t, localapi.Options{Namespaces: []string{"team"}},
		&corev1.ConfigMap{ObjectMeta: meta("team", "a")})
	c, err := cluster.New(server.RESTConfig(), cluster.Options{NoKubelet: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	for deadline := time.Now().Add(time.Minute); ; {
		left, err := purge.Pass(t.Context(), server.RESTConfig(), purge.Options{})
		if err != nil || time.Now().After(deadline) {
			t.Fatal(left, err)
		}
		if left.None() {
			break
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A request that fails keeps nothing else from going.
func TestErrorsAreJoined(t *testing.T) {
	server := localapi.NewTestWith(t, localapi.Options{Namespaces: []string{"team"}},
		&corev1.ConfigMap{ObjectMeta: meta("team", "a")}, &corev1.Secret{ObjectMeta: meta("team", "a")})
	server.Intercept(
		localapi.Rule{Verb: "deletecollection", Resource: "secrets", Err: apierrors.NewInternalError(errors.New("no"))},
	)
	if _, err := purge.Pass(t.Context(), server.RESTConfig(), purge.Options{}); err == nil ||
		!strings.Contains(err.Error(), "delete all Secret in team") {
		t.Errorf("the error is %v", err)
	}
	if left, err := purge.Pass(t.Context(), server.RESTConfig(), purge.Options{}); left.Objects != 1 || err == nil {
		t.Errorf("left: %s, %v", left, err)
	}
}

func TestGone(t *testing.T) {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := server.RESTConfig()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := purge.Pass(t.Context(), config, purge.Options{}); !purge.Gone(err) {
		t.Errorf("a server that is closed: %v", err)
	}
	elsewhere := localapi.NewTest(t)
	away := rest.CopyConfig(elsewhere.RESTConfig())
	away.Host += "/nowhere"
	if _, err := purge.Pass(t.Context(), away, purge.Options{}); !purge.Gone(err) {
		t.Errorf("a path that nobody serves: %v", err)
	}
	if purge.Gone(apierrors.NewForbidden(schema.GroupResource{}, "", nil)) || purge.Gone(context.DeadlineExceeded) ||
		purge.Gone(http.ErrHandlerTimeout) || purge.Gone(nil) {
		t.Error("other errors are taken for it")
	}
}
