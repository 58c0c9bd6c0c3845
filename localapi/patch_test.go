package localapi_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
)

func TestPatchTypes(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	pods := client.CoreV1().Pods("default")
	for _, c := range []struct {
		name  string
		kind  types.PatchType
		patch string
		want  string // the images, or what the error says
	}{
		{"json", types.JSONPatchType, `[{"op":"replace","path":"/spec/containers/0/image","value":"new"}]`, "new two"},
		{
			"json test fails", types.JSONPatchType, `[{"op":"test","path":"/metadata/name","value":"other"}]`,
			"the server rejected our request due to an error in our request",
		},
		{"merge", types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`, "one two"},
		{"strategic", types.StrategicMergePatchType, `{"spec":{"containers":[{"name":"b","image":"new"}]}}`, "one new"},
		{"strategic, retain", types.StrategicMergePatchType, `{"metadata":{"annotations":{"x":"y"}}}`, "one two"},
		{"malformed", types.MergePatchType, `{`, "invalid JSON patch"},
		{
			"of the name", types.MergePatchType, `{"metadata":{"name":"other"}}`,
			"the name of the object (other) does not match the name on the URL (p)",
		},
		{
			"of an immutable field", types.MergePatchType, `{"metadata":{"uid":"other"}}`,
			`Pod "p" is invalid: metadata.uid: Invalid value: "other": field is immutable`,
		},
		{
			"with a version that is old", types.MergePatchType, `{"metadata":{"resourceVersion":"1","labels":{"a":"c"}}}`,
			"the object has been modified",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := newPod("p", "")
			pod.Spec.Containers = []corev1.Container{{Name: "a", Image: "one"}, {Name: "b", Image: "two"}}
			createPod(t, client, pod)
			defer func() { _ = pods.Delete(t.Context(), "p", metav1.DeleteOptions{}) }()
			got, err := pods.Patch(t.Context(), "p", c.kind, []byte(c.patch), metav1.PatchOptions{})
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("error is %q, want it to say %q", err, c.want)
				}
				return
			}
			if images := got.Spec.Containers[0].Image + " " + got.Spec.Containers[1].Image; images != c.want {
				t.Errorf("images are %q, want %q", images, c.want)
			}
		})
	}
	if _, err := pods.Patch(t.Context(), "none", types.MergePatchType, []byte(`{}`),
		metav1.PatchOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("patch of a missing object: %v, want NotFound", err)
	}
	if _, err := pods.Patch(t.Context(), "p", "application/x", []byte(`{}`),
		metav1.PatchOptions{}); !apierrors.IsUnsupportedMediaType(err) {
		t.Errorf("unknown patch type: %v, want UnsupportedMediaType", err)
	}
}

func TestPatchWithoutEffectWritesNothing(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	created := mustCreate(t, maps, configMap("a", "k", "v"))
	for range 2 {
		got, err := maps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"k":"v"}}`),
			metav1.PatchOptions{})
		if err != nil || got.ResourceVersion != created.ResourceVersion {
			t.Fatalf("patch without effect: %v, version %s → %s", err, created.ResourceVersion, got.ResourceVersion)
		}
	}
}

func TestStatusIsASubresource(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	deployments := client.AppsV1().Deployments("default")
	created := createDeployment(t, client)
	if created.Generation != 1 || created.Status.Replicas != 0 {
		t.Fatalf("created: generation %d, status %+v", created.Generation, created.Status)
	}
	created.Status.Replicas, created.Spec.Replicas = 7, ptrTo(int32(9))
	updated, err := deployments.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	if err != nil || updated.Status.Replicas != 7 || *updated.Spec.Replicas != 1 || updated.Generation != 1 {
		t.Fatalf("status write: %v, status %d, spec %d, generation %d", err, updated.Status.Replicas,
			*updated.Spec.Replicas, updated.Generation)
	}
	updated.Status.Replicas, updated.Spec.Replicas = 1, ptrTo(int32(3))
	updated, err = deployments.Update(t.Context(), updated, metav1.UpdateOptions{})
	if err != nil || updated.Status.Replicas != 7 || *updated.Spec.Replicas != 3 || updated.Generation != 2 {
		t.Fatalf("spec write: %v, status %d, spec %d, generation %d", err, updated.Status.Replicas,
			*updated.Spec.Replicas, updated.Generation)
	}
	var statusManagers int
	for _, f := range updated.ManagedFields {
		if f.Subresource == "status" {
			statusManagers++
		}
	}
	if statusManagers != 1 {
		t.Errorf("managed fields have %d entries for status, want 1: %+v", statusManagers, updated.ManagedFields)
	}
}

func TestScaleSubresource(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	deployments := client.AppsV1().Deployments("default")
	created := createDeployment(t, client)
	scale, err := deployments.GetScale(t.Context(), "web", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 1 || scale.Status.Selector != "app=web" {
		t.Fatalf("get scale: %v, %+v", err, scale)
	}
	scale.Spec.Replicas = 5
	if scale, err = deployments.UpdateScale(t.Context(), "web", scale, metav1.UpdateOptions{}); err != nil ||
		scale.Spec.Replicas != 5 {
		t.Fatalf("update scale: %v, %+v", err, scale)
	}
	scale.ResourceVersion = created.ResourceVersion
	if _, err := deployments.UpdateScale(t.Context(), "web", scale,
		metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old scale: %v, want Conflict", err)
	}
	_, err = deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":6}}`),
		metav1.PatchOptions{}, "scale")
	if err != nil {
		t.Fatalf("patch scale: %v", err)
	}
	got, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || *got.Spec.Replicas != 6 || got.Generation != 3 {
		t.Errorf("scaled deployment: %v, %d replicas, generation %d", err, *got.Spec.Replicas, got.Generation)
	}
}

func TestBindingAndEviction(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	pods := client.CoreV1().Pods("default")
	createPod(t, client, newPod("p", ""))
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "n1"},
	}
	if err := pods.Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatalf("bind: %v", err)
	}
	if pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{}); err != nil || pod.Spec.NodeName != "n1" {
		t.Fatalf("bound pod: %v, node %q", err, pod.Spec.NodeName)
	}
	if err := pods.Bind(t.Context(), binding, metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("second binding: %v, want Conflict", err)
	}
	if err := pods.EvictV1(t.Context(), evictionOf("p")); err != nil {
		t.Fatalf("evict: %v", err)
	}
	pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || pod.DeletionTimestamp == nil {
		t.Fatalf("evicted pod: %v, deletion timestamp %v", err, pod.DeletionTimestamp)
	}
	evicted := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
			c.Reason == "EvictionByEvictionAPI"
	})
	if !evicted {
		t.Errorf("conditions of an evicted pod: %v", pod.Status.Conditions)
	}
	stale := evictionOf("p")
	stale.DeleteOptions = &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}
	if err := pods.EvictV1(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("eviction of another pod of that name: %v, want Conflict", err)
	}
}

// TestBindings: a binding can be created without its pod in the path, too, and is known to discovery as a type. Nothing
// else can be done with bindings.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/storage/storage.go LegacyBindingREST; a spec of karpenter.
func TestBindings(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client := clientset(t, config)
	createPod(t, client, newPod("p", ""))
	bind := func(name string) error {
		return client.CoreV1().RESTClient().Post().Namespace("default").Resource("bindings").Body(&corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"},
		}).Do(t.Context()).Error()
	}
	if err := bind("p"); err != nil {
		t.Fatal(err)
	}
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || pod.Spec.NodeName != "n1" {
		t.Errorf("bound pod: %v, node %q", err, pod.Spec.NodeName)
	}
	if err := bind("p"); !apierrors.IsConflict(err) {
		t.Errorf("second binding: %v, want Conflict", err)
	}
	if err := bind("absent"); !apierrors.IsNotFound(err) {
		t.Errorf("binding of no pod: %v, want NotFound", err)
	}
	if err := bind(""); !apierrors.IsBadRequest(err) {
		t.Errorf("binding without a name: %v, want BadRequest", err)
	}
	for _, request := range []*rest.Request{client.CoreV1().RESTClient().Get(), client.CoreV1().RESTClient().Delete()} {
		err := request.Namespace("default").Resource("bindings").Do(t.Context()).Error()
		if !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%v, want MethodNotAllowed", err)
		}
	}
	list, err := client.Discovery().ServerResourcesForGroupVersion("v1")
	if err != nil {
		t.Fatal(err)
	}
	want := metav1.APIResource{
		Name: "bindings", SingularName: "binding", Namespaced: true, Kind: "Binding", Verbs: metav1.Verbs{"create"},
	}
	found := func(r metav1.APIResource) bool { return reflect.DeepEqual(r, want) }
	if !slices.ContainsFunc(list.APIResources, found) {
		t.Errorf("%+v is not in %+v", want, list.APIResources)
	}
}

func TestServerSideApply(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	apply := func(manager string, force bool, data map[string]string) (*corev1.ConfigMap, error) {
		return maps.Apply(t.Context(), corev1apply.ConfigMap("a", "default").WithData(data),
			metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	created, err := apply("one", false, map[string]string{"k": "1", "gone": "soon"})
	if err != nil || created.UID == "" {
		t.Fatalf("apply that creates: %v", err)
	}
	if _, err = apply("two", false, map[string]string{"k": "2"}); !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), `conflict with "one": .data.k`) {
		t.Fatalf("conflicting apply: %v", err)
	}
	got, err := apply("two", true, map[string]string{"k": "2"})
	if err != nil || got.Data["k"] != "2" || got.Data["gone"] != "soon" {
		t.Fatalf("forced apply: %v, %v", err, got.Data)
	}
	got, err = apply("one", false, map[string]string{"other": "3"})
	if err != nil || len(got.Data) != 2 || got.Data["k"] != "2" || got.Data["other"] != "3" {
		t.Fatalf("apply that drops a field: %v, %v", err, got.Data)
	}
	again, err := apply("one", false, map[string]string{"other": "3"})
	if err != nil || again.ResourceVersion != got.ResourceVersion {
		t.Errorf("the same apply again: %v, version %s → %s", err, got.ResourceVersion, again.ResourceVersion)
	}
	if _, err := apply("", false, nil); !apierrors.IsInvalid(err) {
		t.Errorf("apply without a manager: %v, want Invalid", err)
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	_, config := start(t, localapi.Options{})
	maps := clientset(t, config).CoreV1().ConfigMaps("default")
	all := []string{metav1.DryRunAll}
	if got, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{DryRun: all}); err != nil ||
		got.UID == "" {
		t.Fatalf("create: %v, UID %q", err, got.UID)
	}
	if _, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("get after a dry create: %v, want NotFound", err)
	}
	created := mustCreate(t, maps, configMap("a", "k", "v"))
	if _, err := maps.Create(t.Context(), configMap("a"),
		metav1.CreateOptions{DryRun: all}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("dry create of an existing object: %v, want AlreadyExists", err)
	}
	changed := created.DeepCopy()
	changed.Data["k"] = "other"
	if got, err := maps.Update(t.Context(), changed, metav1.UpdateOptions{DryRun: all}); err != nil ||
		got.Data["k"] != "other" {
		t.Errorf("update: %v, %v", err, got)
	}
	if err := maps.Delete(t.Context(), "a", metav1.DeleteOptions{DryRun: all}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if got, err := maps.Get(t.Context(), "a", metav1.GetOptions{}); err != nil ||
		got.ResourceVersion != created.ResourceVersion {
		t.Errorf("get after dry writes: %v, version %s, want %s", err, got.ResourceVersion, created.ResourceVersion)
	}
	if _, err := maps.Create(t.Context(), configMap("b"),
		metav1.CreateOptions{DryRun: []string{"Some"}}); !apierrors.IsInvalid(err) {
		t.Errorf("unknown dry run: %v, want Invalid", err)
	}
}

func TestFieldValidation(t *testing.T) {
	_, config := start(t, localapi.Options{})
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dota":{"k":"v"}}`
	const path = "/api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation="
	for mode, want := range map[string]struct {
		code    int
		warning string
	}{
		"":       {201, `299 - "unknown field \"dota\""`},
		"Warn":   {201, `299 - "unknown field \"dota\""`},
		"Ignore": {201, ""},
		"Strict": {400, ""},
		"Other":  {422, ""},
	} {
		response := send(t, config,
			request{method: "POST", path: path + mode, contentType: "application/json", body: body})
		_ = response.Body.Close()
		if response.StatusCode != want.code || response.Header.Get("Warning") != want.warning {
			t.Errorf("mode %q: %d with warning %q, want %d with %q", mode, response.StatusCode,
				response.Header.Get("Warning"), want.code, want.warning)
		}
	}
	_, text := answer(t, config,
		request{method: "POST", path: path + "Strict", contentType: "application/json", body: body})
	if want := `ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dota"`; statusOf(t, text).Message != want {
		t.Errorf("strict error is %q, want %q", statusOf(t, text).Message, want)
	}
}

// Every duplicate key in YAML gets a warning of its own, with the number of its line.
//
// Source: k8s.io/kubernetes v1.37.2 test/integration/apiserver/field_validation_test.go TestFieldValidation.
func TestFieldValidationOfYAML(t *testing.T) {
	_, config := start(t, localapi.Options{})
	const body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: v\n  k: w\n  j: v\n  j: w\n"
	const path = "/api/v1/namespaces/default/configmaps"
	twice := []string{`299 - "line 6: key \"k\" already set in map"`, `299 - "line 8: key \"j\" already set in map"`}
	for _, test := range []struct {
		request
		want []string
	}{
		{request{
			method: "PATCH", path: path + "/a?fieldManager=m", contentType: "application/apply-patch+yaml",
		}, twice},
		{request{
			method: "PATCH", path: path + "/a?fieldManager=m&fieldValidation=Warn",
			contentType: "application/apply-patch+yaml",
		}, twice},
		{request{
			method: "PATCH", path: path + "/a?fieldManager=m&fieldValidation=Ignore",
			contentType: "application/apply-patch+yaml",
		}, nil},
		{request{
			method: "PUT", path: path + "/a", contentType: "application/yaml", body: "dota: {}\n",
		}, append(slices.Clone(twice), `299 - "unknown field \"dota\""`)},
	} {
		test.body = body + test.body
		response := send(t, config, test.request)
		_ = response.Body.Close()
		if got := response.Header.Values("Warning"); response.StatusCode >= 300 || !slices.Equal(got, test.want) {
			t.Errorf("%s %s: %d with warnings %q, want %q", test.method, test.path, response.StatusCode, got, test.want)
		}
	}
}

// Source: k8s.io/kubernetes v1.37.2 test/integration/apiserver/apiserver_test.go TestDedupOwnerReferences.
func TestDuplicateOwnersAreDropped(t *testing.T) {
	_, config := start(t, localapi.Options{})
	const path = "/api/v1/namespaces/default/configmaps"
	owner := func(name string) string {
		return strings.ReplaceAll(`{"apiVersion":"v1","kind":"ConfigMap","name":"NAME","uid":"NAME"}`, "NAME", name)
	}
	owners := strings.Join([]string{owner("a"), owner("a"), owner("b"), owner("b"), owner("a")}, ",")
	for _, test := range []struct{ method, path, contentType, when string }{
		{"POST", path, "application/json", ""},
		{"PUT", path + "/a", "application/json", ""},
		{"PATCH", path + "/a", "application/merge-patch+json", " after mutating admission happens"},
	} {
		response := send(t, config, request{
			method: test.method, path: test.path, contentType: test.contentType,
			body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","ownerReferences":[` +
				owners + `]}}`,
		})
		var got corev1.ConfigMap
		err := json.NewDecoder(response.Body).Decode(&got)
		_ = response.Body.Close()
		if err != nil || len(got.OwnerReferences) != 2 {
			t.Errorf("%s: %v, owners %v", test.method, err, got.OwnerReferences)
		}
		want := `299 - ".metadata.ownerReferences contains duplicate entries` + test.when + `; API server dedups owner ` +
			`references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate ` +
			`UID(s) observed: a, b, a"`
		if warnings := response.Header.Values("Warning"); !slices.Equal(warnings, []string{want}) {
			t.Errorf("%s: warnings %q, want %q", test.method, warnings, want)
		}
	}
}

func createDeployment(t *testing.T, client kubernetes.Interface) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
			},
		},
	}
	created, err := client.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create deployment: %v", err)
	}
	return created
}
