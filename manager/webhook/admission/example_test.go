package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/manager/webhook/admission"
)

// request returns the request to create an object.
func request(raw string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "7", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(raw)},
	}}
}

// policy pulls images always.
type policy struct{}

// Default implements admission.Defaulter.
func (policy) Default(_ context.Context, pod *corev1.Pod) error {
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].ImagePullPolicy = corev1.PullAlways
	}
	return nil
}

// The patch changes what the Defaulter changed, and nothing else of what was sent.
func ExampleWithDefaulter() {
	hook := admission.WithDefaulter(scheme.Scheme, policy{})
	r := request(`{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "newField": true}]}}`)
	fmt.Println(string(hook.Handle(context.Background(), r).Patch))
	// Output: [{"op":"add","path":"/spec/containers/0/imagePullPolicy","value":"Always"}]
}

// A Handler decodes what it needs.
func ExampleNewDecoder() {
	decoder := admission.NewDecoder(scheme.Scheme)
	hook := &admission.Webhook{Handler: admission.HandlerFunc(
		func(_ context.Context, r admission.Request) admission.Response {
			pod := &corev1.Pod{}
			if err := decoder.Decode(r, pod); err != nil {
				return admission.Errored(http.StatusBadRequest, err)
			}
			return admission.Allowed("").WithWarnings("there are no containers in " + pod.Name)
		})}
	answer := hook.Handle(context.Background(), request(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}`))
	text, _ := json.Marshal(answer.Warnings)
	fmt.Println(answer.Allowed, string(text))
	// Output: true ["there are no containers in a"]
}

// A Defaulter reads the user from the request in its context. A test makes that context itself.
func ExampleNewContextWithRequest() {
	r := request("{}")
	r.UserInfo.Username = "ann"
	ctx := admission.NewContextWithRequest(context.Background(), r)
	got, err := admission.RequestFromContext(ctx)
	fmt.Println(got.UserInfo.Username, got.IsDryRun(), err)
	// Output: ann false <nil>
}
