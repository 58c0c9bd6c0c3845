package ownwrites

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// BenchmarkNoteWrite is what RunUntilIdle adds to a write: the answer is looked at and remembered.
func BenchmarkNoteWrite(b *testing.B) {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "d7a1", ResourceVersion: "42"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(pod, &body); err != nil {
		b.Fatal(err)
	}
	header := http.Header{"Content-Type": {runtime.ContentTypeProtobuf}}
	for _, active := range []bool{false, true} {
		name := "off"
		if active {
			name = "on"
		}
		b.Run(name, func(b *testing.B) {
			w, err := New(&rest.Config{Host: "http://localhost"})
			if err != nil {
				b.Fatal(err)
			}
			w.active.Store(active)
			transport := w.Wrap(answering(func() *http.Response {
				return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewReader(body.Bytes()))}
			}))
			request, err := http.NewRequest(http.MethodPut, "http://localhost/api/v1/namespaces/default/pods/web-0", http.NoBody)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				response, err := transport.RoundTrip(request)
				if err != nil {
					b.Fatal(err)
				}
				_ = response.Body.Close()
			}
		})
	}
}

// answering is a server of one answer.
type answering func() *http.Response

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a(), nil }
