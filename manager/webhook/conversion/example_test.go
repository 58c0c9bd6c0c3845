package conversion_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/flyball-dev/flyball/manager/internal/website"
	"github.com/flyball-dev/flyball/manager/webhook/conversion"
)

// Both versions of the kind are in the scheme; v2 is the hub.
func ExampleNew() {
	hook := conversion.New(website.Scheme())
	if err := hook.RegisterHub(&website.V1{}); err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest("POST", "/convert", strings.NewReader(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
		"request": {"uid": "7", "desiredAPIVersion": "web.example.org/v2", "objects": [
			{"apiVersion": "web.example.org/v1", "kind": "Website", "spec": {"port": 80}}]}}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	hook.ServeHTTP(w, r)
	var answer struct {
		Response struct {
			ConvertedObjects []struct{ Spec json.RawMessage }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(answer.Response.ConvertedObjects[0].Spec))
	// Output: {"ports":[80]}
}

// The types' own methods convert, without a webhook.
func ExampleNewHubConverter() {
	c, err := conversion.NewHubConverter(website.Scheme(), &website.V1{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var v2 website.V2
	err = c.ConvertObject(context.Background(), &website.V1{Spec: website.SpecV1{Port: 80}}, &v2)
	fmt.Println(v2.Spec.Ports, err)
	// Output: [80] <nil>
}
