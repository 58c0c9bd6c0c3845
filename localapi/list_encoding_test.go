package localapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// TestListsAreEncodedAsByApimachinery lists typed objects, as JSON and as protobuf, and encodes the decoded answers
// with the codecs of apimachinery: that gives the same bytes. Both formats tell the same, and so do gets.
func TestListsAreEncodedAsByApimachinery(t *testing.T) {
	const manyMetadata = 40 // the sizes of metadata pass 127 and 255 bytes, where its length takes another byte
	server, config := start(t, localapi.Options{RBAC: true})
	objects := []runtime.Object{
		&corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: "e", Namespace: "default"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: "default"},
			Source:         corev1.EventSource{Component: "c"}, Reason: "Because",
		},
		&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: "h", Namespace: "default"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "d"},
				MaxReplicas:    3,
			},
		},
	}
	for i := range manyMetadata {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "m" + strconv.Itoa(i), Namespace: "default",
			Annotations: map[string]string{"a": fmt.Sprintf("%*d", 5*i, i)},
		}})
	}
	if err := server.Seed(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
	client := clientset(t, config).CoreV1()
	for _, name := range []string{"p", "q"} {
		if _, err := client.Pods("default").Create(t.Context(), newPod(name, ""), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{
		"/api/v1/configmaps", "/api/v1/configmaps?limit=7",
		"/api/v1/namespaces/default/configmaps/m7",
		"/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/pods/p",
		"/api/v1/namespaces",
		"/api/v1/services", "/api/v1/events", "/apis/events.k8s.io/v1/events",
		"/apis/discovery.k8s.io/v1/endpointslices",
		"/apis/autoscaling/v1/horizontalpodautoscalers", "/apis/autoscaling/v2/horizontalpodautoscalers",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/apps/v1/deployments",
	} {
		var decoded []runtime.Object
		for _, encoding := range encodings {
			got := wholeAnswer(t, config, path, encoding)
			info, ok := runtime.SerializerInfoForMediaType(clientscheme.Codecs.SupportedMediaTypes(), encoding)
			if !ok {
				t.Fatalf("no codec for %s", encoding)
			}
			obj, _, err := info.Serializer.Decode(got, nil, nil)
			if err != nil {
				t.Fatalf("%s as %s: %v", path, encoding, err)
			}
			var want bytes.Buffer
			if err := info.Serializer.Encode(obj, &want); err != nil {
				t.Fatalf("%s as %s: %v", path, encoding, err)
			}
			if !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%s as %s:\n%q, want\n%q", path, encoding, got, want.Bytes())
			}
			decoded = append(decoded, obj)
		}
		if !apiequality.Semantic.DeepEqual(decoded[0], decoded[1]) {
			t.Errorf("%s (-JSON +protobuf):\n%s", path, cmp.Diff(decoded[0], decoded[1]))
		}
	}
}

// wholeAnswer reads the answer to a get or list, in pieces of various sizes. Its length must be as announced.
func wholeAnswer(t *testing.T, config *rest.Config, path, accept string) []byte {
	t.Helper()
	response := send(t, config, request{path: path, accept: accept})
	defer response.Body.Close()
	var got []byte
	for size := 1; ; size = size*2 + 1 {
		piece := make([]byte, size)
		n, err := response.Body.Read(piece)
		got = append(got, piece[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	length := response.Header.Get("Content-Length")
	if response.StatusCode != 200 || response.ContentLength >= 0 && response.ContentLength != int64(len(got)) ||
		length != "" && length != strconv.Itoa(len(got)) {
		t.Errorf("%s: status %d, %d bytes, announced as %d and %q", path, response.StatusCode, len(got),
			response.ContentLength, length)
	}
	return got
}

// TestCustomListsAreEncodedAsByApimachinery is the same for objects without a Go type.
func TestCustomListsAreEncodedAsByApimachinery(t *testing.T) {
	server, config := start(t, localapi.Options{})
	if err := server.Seed(t.Context(), fromYAML(t, gadgetsYAML)); err != nil {
		t.Fatal(err)
	}
	const path = "/apis/example.com/v1/namespaces/default/gadgets"
	gadgets := dynamicClient(t, config).Resource(gadgetsV1).Namespace("default")
	for i := range 3 {
		got := wholeAnswer(t, config, path, runtime.ContentTypeJSON)
		var list unstructured.UnstructuredList
		if err := list.UnmarshalJSON(got); err != nil || len(list.Items) != i {
			t.Fatalf("%d items: %v: %s", len(list.Items), err, got)
		}
		want, err := list.MarshalJSON()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: %s, want\n%s", err, got, want)
		}
		name := "g" + strconv.Itoa(i)
		if _, err := gadgets.Create(t.Context(), gadget(t, name, "{mode: fast}"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestListsThatAreCut: a gate cuts the answer to a list in half.
func TestListsThatAreCut(t *testing.T) {
	cut := false
	_, config := start(t, localapi.Options{Gate: gate.Funcs{
		OnAnswer: func(context.Context, *gate.Request, gate.Answer) gate.Verdict {
			if cut {
				return gate.Verdict{Action: gate.Truncate}
			}
			return gate.Verdict{}
		},
	}})
	for _, encoding := range encodings {
		cut = false
		whole := wholeAnswer(t, config, "/api/v1/namespaces", encoding)
		cut = true
		response := send(t, config, request{path: "/api/v1/namespaces", accept: encoding})
		got, err := io.ReadAll(response.Body)
		if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.Equal(got, whole[:len(whole)/2]) {
			t.Errorf("cut answer as %s: %v, %d of %d bytes", encoding, err, len(got), len(whole))
		}
	}
}
