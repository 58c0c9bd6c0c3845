package localapi_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/localapi"
)

// deleteOptions is the body of a delete in a content type, as a kind of a group version.
func deleteOptions(t *testing.T, contentType string, gv schema.GroupVersion, o metav1.DeleteOptions) string {
	t.Helper()
	o.SetGroupVersionKind(gv.WithKind("DeleteOptions"))
	if contentType != runtime.ContentTypeProtobuf {
		text, err := yaml.Marshal(o)
		if err == nil && contentType == runtime.ContentTypeJSON {
			text, err = yaml.YAMLToJSON(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(gv, &o)
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(&o, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDeleteOptionsOfEveryGroupVersion: clients send the options of a delete as a kind of meta.k8s.io/v1, of v1 or of
// the resource's own group version, and a kube-apiserver takes any. They count: here, a precondition that fails.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/delete.go DeleteResource.
func TestDeleteOptionsOfEveryGroupVersion(t *testing.T) {
	server, config := start(t, localapi.Options{})
	if err := server.Seed(t.Context(), configMap("a")); err != nil {
		t.Fatal(err)
	}
	client := dynamicClient(t, config)
	if _, err := client.Resource(crds).Create(t.Context(), fromYAML(t, gadgetsYAML),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(gadgetsV1).Namespace("default").Create(t.Context(), gadget(t, "a", "{mode: fast}"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	paths := []string{
		"/api/v1/namespaces/default/configmaps/a", "/apis/example.com/v1/namespaces/default/gadgets/a",
		"/apis/example.com/v1beta1/namespaces/default/gadgets/a",
	}
	groupVersions := []schema.GroupVersion{
		{Group: "meta.k8s.io", Version: "v1"},
		{Version: "v1"},
		{Group: "example.com", Version: "v1"},
		{Group: "example.com", Version: "v1beta1"},
		{Group: "batch", Version: "v1"},
		{Group: "no.such.group", Version: "v1alpha1"},
	}
	for _, contentType := range []string{
		runtime.ContentTypeJSON, runtime.ContentTypeYAML,
		runtime.ContentTypeProtobuf,
	} {
		for _, gv := range groupVersions {
			for _, path := range paths {
				wantFailedPrecondition(t, config, path, contentType, gv)
			}
		}
	}
}

func wantFailedPrecondition(t *testing.T, config *rest.Config, path, contentType string, gv schema.GroupVersion) {
	t.Helper()
	other := types.UID("another")
	body := deleteOptions(t, contentType, gv, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	code, text := answer(t, config, request{method: "DELETE", path: path, contentType: contentType, body: body})
	if code != 409 || !strings.Contains(text, "UID in the precondition") {
		t.Errorf("DELETE %s with options of %s in %s: %d %s", path, gv, contentType, code, text)
	}
}

// TestDeleteCollectionOptionsOfOwnGroupVersion: a collection is deleted with options of the resource's own group
// version too.
func TestDeleteCollectionOptionsOfOwnGroupVersion(t *testing.T) {
	client, api := gadgets(t)
	for i := range 2 {
		if _, err := api.Create(t.Context(), gadget(t, fmt.Sprint("g", i), "{mode: fast}"),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	o := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "DeleteOptions"}}
	if err := api.DeleteCollection(t.Context(), o, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	left, err := client.Resource(gadgetsV1).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("left: %d, %v", len(left.Items), err)
	}
}

// TestQueryOptions: the query is read as a whole, also by the verbs and paths for which it is rare.
//
// Source: k8s.io/apimachinery v0.37.2 pkg/apis/meta/internalversion/scheme ParameterCodec, pkg/apis/meta/v1/validation.
func TestQueryOptions(t *testing.T) {
	server, config := start(t, localapi.Options{})
	if err := server.Seed(t.Context(), configMap("a")); err != nil {
		t.Fatal(err)
	}
	const maps, table = "/api/v1/namespaces/default/configmaps", "application/json;as=Table;g=meta.k8s.io;v=v1"
	for _, c := range []struct {
		request
		code int
	}{
		{request{method: "DELETE", path: maps + "/a?uid=another"}, 409},
		{request{method: "DELETE", path: maps + "/a?resourceVersion=1"}, 409},
		{request{method: "DELETE", path: maps + "?uid=another"}, 409},
		{request{method: "DELETE", path: maps + "/a", contentType: runtime.ContentTypeCBOR, body: "{}"}, 415},
		{request{path: "/api/v1/watch/namespaces/default/configmaps?sendInitialEvents=true"}, 422},
		{request{path: maps + "?labelSelector=no=thing&includeObject=x", accept: table}, 400},
		{request{path: maps + "?includeObject=x"}, 200},
		{request{path: maps + "?watch=true&timeoutSeconds=1&includeObject=x", accept: table}, 400},
		{request{method: "DELETE", path: maps + "?resourceVersion=1&dryRun=All"}, 200},
		{request{path: maps + "/a"}, 200},
	} {
		wantCode(t, config, c.code, c.request)
	}
}
