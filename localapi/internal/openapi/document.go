package openapi

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/resource"
)

// document is an OpenAPI v3 document of one group version.
type document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       map[string]string                `json:"info"`
	Paths      map[string]map[string]*operation `json:"paths"`
	Components struct {
		Schemas components `json:"schemas"`
	} `json:"components"`
}

type operation struct {
	Description string               `json:"description,omitempty"`
	OperationID string               `json:"operationId"`
	Parameters  []*parameter         `json:"parameters,omitempty"`
	RequestBody *content             `json:"requestBody,omitempty"`
	Responses   map[string]*response `json:"responses"`
	Action      string               `json:"x-kubernetes-action,omitempty"`
	Kind        *groupVersionKind    `json:"x-kubernetes-group-version-kind,omitempty"`
}

type parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Schema      *schema `json:"schema"`
}

type content struct {
	Content map[string]mediaType `json:"content"`
}

type response struct {
	Description string `json:"description"`
	content
}

type mediaType struct {
	Schema *schema `json:"schema"`
}

func newDocument(gv runtimeschema.GroupVersion, definitions []*resource.Definition) *document {
	d := &document{
		OpenAPI: "3.0.0", Info: map[string]string{"title": "Kubernetes", "version": "v1.37.2+flyball"},
		Paths: map[string]map[string]*operation{},
	}
	d.Components.Schemas = components{}
	for _, def := range definitions {
		if def.GroupVersion == gv && !codec.IsUnstructured(def.New()) {
			d.add(def)
		}
	}
	return d
}

// add describes a type, its resource and its subresources.
func (d *document) add(def *resource.Definition) {
	kind := def.GroupVersionKind()
	ref := d.addKind(def.New(), kind)
	listKind := def.GroupVersion.WithKind(def.Kind + "List")
	list := d.addKind(def.NewList(), listKind)

	root := "/apis/" + def.GroupVersion.String()
	if def.GroupVersion.Group == "" {
		root = "/api/" + def.GroupVersion.Version
	}
	scope := ""
	if def.Namespaced {
		scope = "/namespaces/{namespace}"
		d.Paths[root+"/"+def.Plural] = map[string]*operation{"get": d.operation("list", kind, list, nil, "all namespaces")}
	}
	collection := root + scope + "/" + def.Plural
	d.Paths[collection] = map[string]*operation{
		"get": d.operation("list", kind, list, nil, ""), "post": d.operation("post", kind, ref, ref, ""),
		"delete": d.operation("deletecollection", kind, nil, nil, ""),
	}
	d.Paths[collection+"/{name}"] = map[string]*operation{
		"get": d.operation("get", kind, ref, nil, ""), "put": d.operation("put", kind, ref, ref, ""),
		"patch": d.operation("patch", kind, ref, ref, ""), "delete": d.operation("delete", kind, nil, nil, ""),
	}
	if def.HasStatus {
		d.Paths[collection+"/{name}/status"] = map[string]*operation{
			"get": d.operation("get", kind, ref, nil, "status"), "put": d.operation("put", kind, ref, ref, "status"),
			"patch": d.operation("patch", kind, ref, ref, "status"),
		}
	}
	for name, sub := range def.Subresources {
		d.addSubresource(collection+"/{name}/"+name, name, sub)
	}
}

// method is the HTTP method of a verb.
var method = map[string]string{"get": "get", "create": "post", "update": "put", "patch": "patch"}

func (d *document) addSubresource(path, name string, sub resource.Subresource) {
	if sub.New == nil {
		return
	}
	ref := d.addKind(sub.New(), sub.Kind)
	operations := map[string]*operation{}
	for _, verb := range sub.Verbs {
		if m, ok := method[verb]; ok {
			operations[m] = d.operation(m, sub.Kind, ref, ref, name)
		}
	}
	d.Paths[path] = operations
}

// addKind adds the schema of a kind and returns a reference to it.
func (d *document) addKind(obj runtime.Object, kind runtimeschema.GroupVersionKind) *schema {
	name := d.Components.Schemas.add(reflect.TypeOf(obj).Elem())
	s := d.Components.Schemas[name]
	if len(s.Kinds) == 0 {
		s.Kinds = []groupVersionKind{{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}}
	}
	return &schema{Ref: schemaPrefix + name}
}

// operation describes a verb of a resource; body is what it takes (nil: nothing), answer what it gives (nil: a Status).
func (d *document) operation(action string, kind runtimeschema.GroupVersionKind, answer, body *schema, of string) *operation {
	op := &operation{
		OperationID: action + kind.Version + kind.Kind + of, Action: action,
		Kind: &groupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind},
	}
	in := func(s *schema) map[string]mediaType { return map[string]mediaType{"application/json": {Schema: s}} }
	if answer == nil {
		answer = &schema{Type: "object"}
	}
	op.Responses = map[string]*response{"200": {Description: "OK", content: content{in(answer)}}}
	switch action {
	case "post", "put", "patch":
		op.Parameters = writeParameters
		if action == "patch" {
			op.Parameters = patchParameters
		}
		if body != nil {
			op.RequestBody = &content{in(body)}
		}
	}
	return op
}

func query(name, kind, doc string) *parameter {
	return &parameter{Name: name, In: "query", Description: doc, Schema: &schema{Type: kind}}
}

var (
	writeParameters = []*parameter{
		query("dryRun", "string", "All: compute and validate the result, store nothing."),
		query("fieldManager", "string", "Who owns the fields that the request sets."),
		query("fieldValidation", "string", "What to do about unknown and duplicate fields: Ignore, Warn or Strict."),
	}
	patchParameters = append(writeParameters[:len(writeParameters):len(writeParameters)],
		query("force", "boolean", "Take fields from other managers (apply only)."))
)
