package scheme

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

type (
	meta struct {
		Name string `json:"name"`
	}
	pod struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
		Metadata   meta   `json:"metadata"`
		Node       string `json:"node,omitempty"`
	}
	deployment struct {
		Metadata meta `json:"metadata"`
		Replicas int  `json:"replicas"`
	}
	oldDeployment  struct{ Metadata meta }
	otherCompanies struct{ Metadata meta }
	node           struct{ Metadata meta }
)

var (
	pods        = Kind{"", "v1", "Pod"}
	deployments = Kind{"apps", "v1", "Deployment"}
	nodes       = Kind{"", "v1", "Node"}
)

// newScheme returns a Scheme that knows pods, deployments and nodes.
func newScheme(t *testing.T) *Scheme {
	t.Helper()
	s := New()
	for _, c := range []struct {
		kind      Kind
		resource  Resource
		prototype any
	}{
		{pods, Resource{"pods", true}, &pod{}},
		{deployments, Resource{"deployments", true}, &deployment{Replicas: 7}},
		{nodes, Resource{"nodes", false}, &node{}},
	} {
		if err := s.Register(c.kind, c.resource, c.prototype); err != nil {
			t.Fatalf("Register(%s) returned %v, and the kind is new.", c.kind, err)
		}
	}
	return s
}

func decode(t *testing.T, s *Scheme, text string) any {
	t.Helper()
	obj, err := s.Decode([]byte(text))
	if err != nil {
		t.Fatalf("Decode of %s returned the error %v.", text, err)
	}
	return obj
}

func Test1TheKindDecidesTheType(t *testing.T) {
	s := newScheme(t)
	obj := decode(t, s, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "replicas": 3}`)
	d, ok := obj.(*deployment)
	if !ok {
		t.Fatalf("The JSON says apps/v1 Deployment. Decode returned a %T, it should be a *deployment.", obj)
	}
	if d.Metadata.Name != "web" || d.Replicas != 3 {
		t.Fatalf("The JSON has the name web and 3 replicas. The object is %+v.", *d)
	}
	if obj := decode(t, s, `{"apiVersion": "v1", "kind": "Pod"}`); fmt.Sprintf("%T", obj) != "*scheme.pod" {
		t.Fatalf("The JSON says v1 Pod; the group has no name. Decode returned a %T, it should be a *pod.", obj)
	}
}

func Test2EachObjectIsNew(t *testing.T) {
	s := newScheme(t)
	text := `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}`
	first, second := decode(t, s, text).(*deployment), decode(t, s, text).(*deployment)
	if first == second {
		t.Fatal("Decode returned the same object twice. Whoever holds the first one would see it change.")
	}
	if first.Replicas != 0 {
		t.Fatalf("The JSON has no replicas, and the object has %d. Only the type of the prototype counts.",
			first.Replicas)
	}
}

func Test3GroupAndVersionCount(t *testing.T) {
	s := newScheme(t)
	for kind, prototype := range map[Kind]any{
		{"apps", "v1beta1", "Deployment"}:        &oldDeployment{},
		{"shipping.example", "v1", "Deployment"}: &otherCompanies{},
	} {
		if err := s.Register(kind, Resource{"deployments", true}, prototype); err != nil {
			t.Fatalf("Register(%s) returned %v. It is another kind than %s.", kind, err, deployments)
		}
	}
	for apiVersion, want := range map[string]string{
		"apps/v1": "*scheme.deployment", "apps/v1beta1": "*scheme.oldDeployment",
		"shipping.example/v1": "*scheme.otherCompanies",
	} {
		obj := decode(t, s, fmt.Sprintf(`{"apiVersion": %q, "kind": "Deployment"}`, apiVersion))
		if got := fmt.Sprintf("%T", obj); got != want {
			t.Fatalf("The JSON says %s Deployment. Decode returned a %s, it should be a %s.", apiVersion, got, want)
		}
	}
}

func Test4AnUnknownKindKeepsEverything(t *testing.T) {
	s := newScheme(t)
	text := `{"apiVersion":"example.com/v1","kind":"Backup","metadata":{"name":"daily"},` +
		`"spec":{"bytes":9007199254740993}}`
	obj := decode(t, s, text)
	u, ok := obj.(Unstructured)
	if !ok {
		t.Fatalf("No Go type is registered for example.com/v1 Backup. Decode returned a %T, it should be an "+
			"Unstructured.", obj)
	}
	if got := fmt.Sprint(u["spec"]); got != "map[bytes:9007199254740993]" {
		t.Fatalf("The spec is %s, it should be map[bytes:9007199254740993].\nA float64 has 53 bits for the digits. A "+
			"json.Decoder with UseNumber keeps them all.", got)
	}
	k, err := s.KindOf(obj)
	if want := (Kind{"example.com", "v1", "Backup"}); err != nil || k != want {
		t.Fatalf("KindOf returned %s and the error %v. An Unstructured says its kind: %s.", k, err, want)
	}
	again, err := s.Encode(obj)
	if err != nil || string(again) != text {
		t.Fatalf("Encode returned\n  %s\nand the error %v. It should be\n  %s\nA controller that does not know a "+
			"field must not drop it.", again, err, text)
	}
}

func Test5WhatHasNoKindIsAnError(t *testing.T) {
	s := newScheme(t)
	for _, text := range []string{
		`{"metadata": {"name": "web"}}`, `{"kind": "Pod"}`, `{"apiVersion": "v1"}`, `{"kind`, `[]`,
	} {
		if obj, err := s.Decode([]byte(text)); err == nil || obj != nil {
			t.Fatalf("Decode of %s returned %v and the error %v. It should return nil and an error.", text, obj, err)
		}
	}
	text := `{"apiVersion": "apps/v1", "kind": "Deployment", "replicas": "many"}`
	if obj, err := s.Decode([]byte(text)); err == nil || obj != nil {
		t.Fatalf("replicas is a text where a number should be. Decode returned %v and the error %v: half an object is "+
			"worse than none.", obj, err)
	}
}

func Test6GoValuesGetTheirKindBack(t *testing.T) {
	s := newScheme(t)
	p := &pod{Metadata: meta{"web-1"}}
	text, err := s.Encode(p)
	if err != nil {
		t.Fatalf("Encode of a *pod returned the error %v.", err)
	}
	var says map[string]any
	if err := json.Unmarshal(text, &says); err != nil {
		t.Fatalf("Encode returned %s: %v.", text, err)
	}
	if says["apiVersion"] != "v1" || says["kind"] != "Pod" || !strings.Contains(string(text), `{"name":"web-1"}`) {
		t.Fatalf("Encode of the pod web-1 returned %s.\nIt needs its name, the kind Pod, and the apiVersion v1: "+
			"without a group there is no slash.", text)
	}
	if p.Kind != "" {
		t.Fatalf("Encode has changed the object to %+v. It may be in a cache, where others read it.", *p)
	}
	if text, err := s.Encode(&deployment{}); err != nil || !strings.Contains(string(text), `"apiVersion":"apps/v1"`) {
		t.Fatalf("Encode of a *deployment returned %s and the error %v. It has the apiVersion apps/v1.", text, err)
	}
	wrong := &pod{APIVersion: "v0", Kind: "Dog"}
	if text, err := s.Encode(wrong); err != nil || strings.Contains(string(text), "Dog") {
		t.Fatalf("The pod says that it is a Dog. Encode returned %s and the error %v. What counts is its Go "+
			"type.", text, err)
	}
}

func Test7WhatIsNotRegisteredIsAnError(t *testing.T) {
	s := newScheme(t)
	if k, err := s.KindOf(&otherCompanies{}); err == nil {
		t.Fatalf("The type otherCompanies is not registered, and KindOf returned %s.", k)
	}
	if text, err := s.Encode(&otherCompanies{}); err == nil {
		t.Fatalf("The type otherCompanies is not registered, and Encode returned %s. Nobody could decode that.", text)
	}
	if path, err := s.Path(Kind{"apps", "v2", "Deployment"}, "shop", "web"); err == nil {
		t.Fatalf("The kind apps/v2 Deployment is not registered, and Path returned %s.", path)
	}
}

func Test8AKindHasOneType(t *testing.T) {
	s := newScheme(t)
	if err := s.Register(pods, Resource{"pods", true}, &pod{}); err != nil {
		t.Fatalf("v1 Pod was registered again with the same type. Register returned %v: two packages may do that.", err)
	}
	if err := s.Register(pods, Resource{"pods", true}, &otherCompanies{}); err == nil {
		t.Fatal("v1 Pod has the type pod, and was registered with another one. Register returned no error, and from " +
			"now on somebody gets objects that he does not expect.")
	}
	if obj := decode(t, s, `{"apiVersion": "v1", "kind": "Pod"}`); fmt.Sprintf("%T", obj) != "*scheme.pod" {
		t.Fatalf("Register refused another type for v1 Pod. Then Decode returned a %T.", obj)
	}
	if err := s.Register(Kind{"", "v2", "Pod"}, Resource{"pods", true}, &pod{}); err == nil {
		t.Fatal("The type pod is of the kind v1 Pod, and was registered for v2 Pod, too. Register returned no error, " +
			"and nobody knows what Encode should write.")
	}
}

func Test9Paths(t *testing.T) {
	s := newScheme(t)
	for _, c := range []struct {
		kind                  Kind
		namespace, name, want string
	}{
		{pods, "shop", "web-1", "/api/v1/namespaces/shop/pods/web-1"},
		{pods, "shop", "", "/api/v1/namespaces/shop/pods"},
		{pods, "", "", "/api/v1/pods"},
		{deployments, "shop", "web", "/apis/apps/v1/namespaces/shop/deployments/web"},
		{nodes, "", "node-1", "/api/v1/nodes/node-1"},
		{nodes, "shop", "node-1", "/api/v1/nodes/node-1"}, // A node is in no namespace, whoever asks.
	} {
		got, err := s.Path(c.kind, c.namespace, c.name)
		if err != nil || got != c.want {
			t.Fatalf("The path of %s, namespace %q, name %q is %s (error %v). It should be %s.", c.kind, c.namespace,
				c.name, got, err, c.want)
		}
	}
}
