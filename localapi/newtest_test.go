package localapi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// TestIntercept: a rule is about the requests that match it, the n-th of them if it says so, before or after they took
// effect, until it is taken away.
func TestIntercept(t *testing.T) {
	server := localapi.NewTest(t, configMap("a"), newPod("p", ""))
	core := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1()
	maps, pods := core.ConfigMaps("default"), core.Pods("default")
	update := func(value string) error {
		_, err := maps.Update(t.Context(), configMap("a", "k", value), metav1.UpdateOptions{})
		return err
	}
	value := func() string {
		cm, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm.Data["k"]
	}
	quota := apierrors.NewForbidden(corev1.Resource("configmaps"), "a", errors.New("too many"))

	remove := server.Intercept(localapi.Rule{Verb: "update", Resource: "configmaps", Nth: 2, Err: quota})
	for i, want := range []bool{false, true, false} {
		if err := update(fmt.Sprint("first", i)); apierrors.IsForbidden(err) != want || !want && err != nil {
			t.Errorf("update %d: %v, want it refused: %v", i+1, err, want)
		}
	}
	remove()
	remove = server.Intercept(localapi.Rule{Verb: "update", Resource: "configmaps", Err: quota, Applied: true})
	if err := update("applied"); !apierrors.IsForbidden(err) || value() != "applied" {
		t.Errorf("an update that fails after it took effect: %v, %s", err, value())
	}
	remove()
	remove = server.Intercept(localapi.Rule{Name: "a", Err: errors.New("cut the line")})
	if err := update("lost"); err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		t.Errorf("an update whose connection breaks: %v", err)
	}
	remove()
	if err := update("last"); err != nil || value() != "last" {
		t.Errorf("an update after the rules were taken away: %v, %s", err, value())
	}

	server.Intercept(localapi.Rule{Verb: "patch", Resource: "pods", Subresource: "status", Err: quota})
	if _, err := pods.Patch(t.Context(), "p", "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}); err != nil {
		t.Errorf("a patch of the pod itself: %v", err)
	}
	if _, err := pods.Patch(t.Context(), "p", "application/merge-patch+json", []byte(`{}`), metav1.PatchOptions{},
		"status"); !apierrors.IsForbidden(err) {
		t.Errorf("a patch of the status: %v", err)
	}
}

// TestInterceptInABubble: a rule can hold a request for some virtual time, and the gate of the options still decides.
func TestInterceptInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		server := localapi.NewTestWith(t,
			localapi.Options{Gate: gate.Funcs{OnRequest: func(context.Context, *gate.Request) gate.Verdict {
				asked++
				return gate.Verdict{}
			}}}, configMap("a"))
		server.Intercept(localapi.Rule{Verb: "get", Do: func(ctx context.Context, _ *gate.Request) gate.Verdict {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return gate.Verdict{}
		}})
		begin := time.Now()
		maps := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().ConfigMaps("default")
		if _, err := maps.Get(t.Context(), "a",
			metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited != time.Hour || asked != 1 {
			t.Errorf("the get took %v, the other gate was asked %d times", waited, asked)
		}
	})
}

// TestSeedCustomResources: typed or read from a file, with their definition and namespace in any order, as they are.
func TestSeedCustomResources(t *testing.T) {
	definitions, err := manifest.ReadFiles([]string{"testdata/backups.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	addBackups(scheme)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"a": "b"}}}
	typed := &Backup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "typed", UID: "fixed",
			Finalizers: []string{"example.com/f"},
		},
		Spec: BackupSpec{Schedule: "@daily", Keep: 5}, Status: BackupStatus{Kept: 4},
	}
	read := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Backup",
		"metadata": map[string]any{"name": "read", "namespace": "shop"}, "spec": map[string]any{},
	}}
	said := typed.DeepCopyObject().(*Backup)
	said.TypeMeta, said.Name = metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Backup"}, "said"
	seeded := []runtime.Object{definitions[0], namespace, typed, read, said}
	for first := range seeded {
		objects := slices.Concat(seeded[first:], seeded[:first])
		server := localapi.NewTestWith(t, localapi.Options{Scheme: scheme}, objects...)
		c, err := client.New(server.RESTConfig(), client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]Backup{"typed": *typed, "said": *said, "read": {Spec: BackupSpec{Keep: 3}}} {
			var got Backup
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &got); err != nil {
				t.Fatalf("%s, with %d first: %v", name, first, err)
			}
			if got.Spec != want.Spec && name != "read" || got.Spec.Keep != want.Spec.Keep ||
				got.Status != want.Status ||
				len(got.Finalizers) != len(want.Finalizers) || want.UID != "" && got.UID != want.UID {
				t.Errorf("%s, with %d first: %+v", name, first, got)
			}
		}
		if ns, err := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().Namespaces().Get(t.Context(), "shop",
			metav1.GetOptions{}); err != nil || ns.Labels["a"] != "b" {
			t.Errorf("the namespace, with %d first: %v, %v", first, ns.Labels, err)
		}
		if writes := server.Audit().Writes(); len(writes) != 0 {
			t.Errorf("seeding was recorded as %v", writes)
		}
	}
	if typed.ResourceVersion != "" {
		t.Error("the test's own object was changed")
	}

	server := localapi.NewTest(t)
	if err := server.Seed(t.Context(), typed); err == nil || !strings.Contains(err.Error(), "a Scheme that knows it") {
		t.Errorf("a type that nobody knows: %v", err)
	}
	if err := server.Seed(t.Context(), said); err == nil ||
		!strings.Contains(err.Error(),
			"does not serve example.com/v1, Kind=Backup: a custom resource needs its definition") {
		t.Errorf("a type without a definition: %v", err)
	}
}

// tattler notes what a test would have failed with.
type tattler struct {
	*testing.T
	errors []string
}

func (t *tattler) Errorf(format string, args ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}

// TestAssertNoWrites: reads, dry runs and reviews are no writes; refused writes are.
func TestAssertNoWrites(t *testing.T) {
	notes := &tattler{T: t}
	server := localapi.NewTest(notes, configMap("a"))
	maps := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().ConfigMaps("default")
	server.AssertNoWrites(func() {
		_, _ = maps.List(t.Context(), metav1.ListOptions{})
		_ = maps.Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"},
		}}
		reviews := kubernetes.NewForConfigOrDie(server.RESTConfig()).AuthorizationV1().SelfSubjectAccessReviews()
		if r, err := reviews.Create(t.Context(), review,
			metav1.CreateOptions{}); err != nil || !r.Status.Allowed {
			t.Errorf("review: %+v, %v", r, err)
		}
	})
	if len(notes.errors) != 0 {
		t.Errorf("no write: %v", notes.errors)
	}
	server.AssertNoWrites(func() {
		_ = maps.Delete(t.Context(), "missing", metav1.DeleteOptions{})
		_ = maps.Delete(t.Context(), "a", metav1.DeleteOptions{})
	})
	if len(notes.errors) != 2 {
		t.Errorf("two writes: %v", notes.errors)
	}
	if n := len(server.Requests()); n != 5 {
		t.Errorf("%d requests in the log, want 5: %v", n, server.Requests())
	}
}
