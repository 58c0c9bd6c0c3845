package localapi_test

import (
	"encoding/base64"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
)

func TestStrictPatches(t *testing.T) {
	_, config := start(t, localapi.Options{})
	config.WarningHandler = rest.NoWarnings{}
	client := clientset(t, config)
	createPod(t, client, newPod("p", ""))
	pods := client.CoreV1().Pods("default")
	strict := metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"spec":{"nonsense":1}}`,
		types.StrategicMergePatchType: `{"spec":{"nonsense":1}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/spec/nonsense","value":1}]`,
	} {
		if _, err := pods.Patch(t.Context(), "p", kind, []byte(patch), strict); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), `strict decoding error: unknown field "spec.nonsense"`) {
			t.Errorf("strict %s: %v", kind, err)
		}
		if _, err := pods.Patch(t.Context(), "p", kind, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Errorf("lenient %s: %v", kind, err)
		}
	}
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"spec":{"containers":"none"}}`,
		types.StrategicMergePatchType: `{"metadata":{"labels":7}}`,
	} {
		if _, err := pods.Patch(t.Context(), "p", kind, []byte(patch), metav1.PatchOptions{}); err == nil ||
			apierrors.IsInternalError(err) {
			t.Errorf("%s of the wrong type: %v, want the client's error", kind, err)
		}
	}
	apply := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nonsense":1}}`
	force := true
	_, err := pods.Patch(t.Context(), "p", types.ApplyYAMLPatchType, []byte(apply),
		metav1.PatchOptions{FieldManager: "m", Force: &force})
	if err == nil || !strings.Contains(err.Error(), ".spec.nonsense: field not declared in schema") {
		t.Errorf("apply of an unknown field: %v", err)
	}
	double := "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nmetadata: {name: p}\n"
	strict.FieldManager = "m"
	if _, err := pods.Patch(t.Context(), "p", types.ApplyYAMLPatchType, []byte(double),
		strict); !apierrors.IsBadRequest(err) {
		t.Errorf("strict apply of a duplicate field: %v, want a bad request", err)
	}
	if _, err := pods.Patch(t.Context(), "p", types.ApplyYAMLPatchType, []byte(":"),
		metav1.PatchOptions{FieldManager: "m"}); !apierrors.IsBadRequest(err) {
		t.Errorf("malformed apply: %v, want a bad request", err)
	}
}

func TestContinueTokensAreChecked(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	for _, token := range []string{
		"nonsense!", base64.RawURLEncoding.EncodeToString([]byte("{")),
		base64.RawURLEncoding.EncodeToString([]byte(`{"v":"v9","rv":1,"start":"a"}`)),
		base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}`)),
		base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":0,"start":"a"}`)),
	} {
		if _, err := maps.List(t.Context(), metav1.ListOptions{Continue: token}); !apierrors.IsBadRequest(err) {
			t.Errorf("token %q: %v, want a bad request", token, err)
		}
	}
}

func TestDeleteOptionsInTheQuery(t *testing.T) {
	server, config := start(t, localapi.Options{})
	client := clientset(t, config)
	if err := server.Seed(t.Context(), newPod("p", "node")); err != nil {
		t.Fatal(err)
	}
	const path = "/api/v1/namespaces/default/pods/p?"
	if code, body := answer(t, config, request{method: "DELETE", path: path + "gracePeriodSeconds=x"}); code != 400 {
		t.Errorf("malformed grace: %d %s", code, body)
	}
	if code, body := answer(t, config,
		request{method: "DELETE", path: path + "dryRun=All&gracePeriodSeconds=0"}); code != 200 {
		t.Errorf("dry run: %d %s", code, body)
	}
	if code, body := answer(t, config, request{method: "DELETE", path: path + "orphanDependents=false"}); code != 202 {
		t.Errorf("a pod that stays for its grace period: %d %s", code, body)
	}
	if pod, err := client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{}); err != nil ||
		*pod.DeletionGracePeriodSeconds != 30 {
		t.Errorf("deleted pod: %v, %+v", err, pod.ObjectMeta)
	}
	if code, body := answer(t, config,
		request{method: "DELETE", path: path + "gracePeriodSeconds=0&propagationPolicy=Background"}); code != 200 ||
		!strings.Contains(body, `"kind":"Pod"`) {
		t.Errorf("delete of a pod: %d %s", code, body)
	}
	if err := server.Seed(t.Context(), configMap("a")); err != nil {
		t.Fatal(err)
	}
	code, body := answer(t, config, request{method: "DELETE", path: "/api/v1/namespaces/default/configmaps/a"})
	if status := statusOf(t, body); code != 200 || status.Status != metav1.StatusSuccess ||
		status.Details.Kind != "configmaps" || status.Details.UID == "" {
		t.Errorf("delete of a config map: %d %s", code, body)
	}
	body = `{"propagationPolicy":"Foreground","orphanDependents":true}`
	if code, _ := answer(t, config, request{method: "DELETE", path: path, body: body}); code != 422 {
		t.Errorf("contradictory options: %d, want 422", code)
	}
}

func TestReopenedStoreKeepsItsAllocations(t *testing.T) {
	store := memoryStore(t)
	service := func(name string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	create := func(name string) string {
		t.Helper()
		s, config := start(t, localapi.Options{Storage: store})
		defer func() { _ = s.Close() }()
		created, err := clientset(t, config).CoreV1().Services("default").Create(t.Context(), service(name),
			metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return created.Spec.ClusterIP
	}
	if a, b := create("a"), create("b"); a == b {
		t.Errorf("a service of a reopened store got address %s again", a)
	}
}

func TestGroupDiscoveryAndOldWatchPaths(t *testing.T) {
	inBubble(t, localapi.Options{}, func(t *testing.T, s *localapi.Server, client kubernetes.Interface) {
		config := s.RESTConfig()
		if code, body := answer(t, config, request{path: "/apis/apps"}); code != 200 ||
			!strings.Contains(body, `"preferredVersion":{"groupVersion":"apps/v1"`) {
			t.Errorf("/apis/apps: %d %s", code, body)
		}
		if code, _ := answer(t, config, request{path: "/apis/nonsense"}); code != 404 {
			t.Errorf("/apis/nonsense: %d", code)
		}
		maps := client.CoreV1().ConfigMaps("default")
		mustCreate(t, maps, configMap("a"))
		mustCreate(t, maps, configMap("b"))
		response := send(t, config, request{path: "/api/v1/watch/namespaces/default/configmaps/b?timeoutSeconds=1"})
		defer response.Body.Close()
		seen := 0
		for f := range frames(t, response.Body) {
			seen++
			if !strings.Contains(string(f.Object), `"name":"b"`) {
				t.Errorf("watch of b sent %s", f.Object)
			}
		}
		if seen != 1 {
			t.Errorf("watch of b sent %d events, want 1", seen)
		}
		if code, body := answer(t, config,
			request{path: "/api/v1/namespaces/default/configmaps/a?pretty=true"}); code != 200 ||
			!strings.Contains(body, "\n  \"kind\"") {
			t.Errorf("pretty: %d %s", code, body)
		}
	})
}

// TestRoutesOfWhatCanOnlyBeCreated: such a resource has no path of an object, and none of all namespaces. The codes are
// kube-apiserver's, v1.37.2.
func TestRoutesOfWhatCanOnlyBeCreated(t *testing.T) {
	_, config := start(t, localapi.Options{})
	for path, code := range map[string]int{
		"/api/v1/bindings":                                                           404,
		"/api/v1/bindings?watch=1":                                                   404,
		"/api/v1/bindings/x":                                                         404,
		"/api/v1/namespaces/default/bindings":                                        405,
		"/api/v1/namespaces/default/bindings/x":                                      404,
		"/apis/authentication.k8s.io/v1/tokenreviews":                                405,
		"/apis/authentication.k8s.io/v1/tokenreviews/x":                              404,
		"/apis/authorization.k8s.io/v1/localsubjectaccessreviews":                    404,
		"/apis/authorization.k8s.io/v1/localsubjectaccessreviews?watch=1":            404,
		"/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews": 405,
	} {
		for _, method := range []string{"GET", "DELETE", "PUT"} {
			if got, body := answer(t, config, request{method: method, path: path, body: "{}"}); got != code {
				t.Errorf("%s %s: %d %s, want %d", method, path, got, body, code)
			}
		}
	}
	for _, path := range []string{"/api/v1/bindings", "/apis/authentication.k8s.io/v1/tokenreviews/x"} {
		if got, body := answer(t, config, request{method: "POST", path: path, body: "{}"}); got != 404 {
			t.Errorf("POST %s: %d %s, want 404", path, got, body)
		}
	}
}

func TestSubresourceErrors(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	createDeployment(t, client)
	const path = "/apis/apps/v1/namespaces/default/deployments/web"
	for name, c := range map[string]struct {
		r    request
		code int
	}{
		"delete of a scale":         {request{method: "DELETE", path: path + "/scale"}, 405},
		"scale of a missing object": {request{path: path + "x/scale"}, 404},
		"scale of another name": {
			request{method: "PUT", path: path + "/scale", body: `{"metadata":{"name":"other"}}`}, 400,
		},
		"negative scale": {
			request{
				method: "PATCH", path: path + "/scale", contentType: "application/merge-patch+json",
				body: `{"spec":{"replicas":-1}}`,
			}, 422,
		},
		"scale applied against its owner": {request{
			method: "PATCH", path: path + "/scale?fieldManager=n", contentType: "application/apply-patch+yaml",
			body: "apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: web}\nspec: {replicas: 2}\n",
		}, 409},
		"applied scale": {request{
			method: "PATCH", path: path + "/scale?fieldManager=m&force=true",
			contentType: "application/apply-patch+yaml",
			body:        "apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: web}\nspec: {replicas: 3}\n",
		}, 200},
		"post of a status": {request{method: "POST", path: path + "/status", body: `{}`}, 405},
		"status of a missing object": {
			request{method: "PUT", path: path + "x/status", body: `{"metadata":{"name":"webx"}}`}, 404,
		},
	} {
		if code, body := answer(t, config, c.r); code != c.code {
			t.Errorf("%s: %d %s, want %d", name, code, body, c.code)
		}
	}
	if got, err := client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{}); err != nil ||
		*got.Spec.Replicas != 3 {
		t.Errorf("replicas after an applied scale: %v, %d", err, *got.Spec.Replicas)
	}
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/apiserver/export_test.go TestExportRejection.
func TestExportIsRefused(t *testing.T) {
	_, config := start(t, localapi.Options{})
	createDeployment(t, clientset(t, config))
	for query, want := range map[string]int{
		"": 200, "?export=false": 200, "?export=False": 200, "?export=0": 200,
		"?export=true": 400, "?export": 400, "?export=1": 400,
	} {
		for _, path := range []string{"/web", "/web/status", "/web/scale"} {
			code, body := answer(t, config,
				request{path: "/apis/apps/v1/namespaces/default/deployments" + path + query})
			if code != want || want == 400 &&
				statusOf(t, body).Message != "the export parameter, deprecated since v1.14, is no longer supported" {
				t.Errorf("GET %s%s: %d, want %d: %s", path, query, code, want, body)
			}
		}
	}
	if code, body := answer(t, config, request{path: "/apis/apps/v1/deployments?export=true"}); code != 200 {
		t.Errorf("list with export: %d, want 200 as in a kube-apiserver: %s", code, body)
	}
}
