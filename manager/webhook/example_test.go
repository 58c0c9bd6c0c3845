package webhook_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
)

// A server answers requests over TLS while Run runs. A test can ask it without a network.
func ExampleNewServer() {
	s := webhook.NewServer(webhook.Options{})
	hook := &webhook.Admission{Handler: admission.HandlerFunc(
		func(_ context.Context, r admission.Request) admission.Response {
			return admission.Denied("not on Fridays, " + r.UserInfo.Username)
		})}
	if err := s.Register("/calendar", hook); err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest("POST", "/calendar", strings.NewReader(`{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": {"uid": "7", "operation": "CREATE", "userInfo": {"username": "ann"}}}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "not on Fridays, ann"))
	// Output: 200 true
}
