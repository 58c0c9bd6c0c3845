package openapi

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// document is an OpenAPI v3 document of one group version.
type document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       map[string]string                `json:"info"`
	Paths      map[string]map[string]*operation `json:"paths"`
	Components struct {
		Schemas map[string]any `json:"schemas"`
	} `json:"components"`

	// types are the schemas of Go types, custom those of types without one, by name. Together they are the components.
	types   components
	custom  map[string]any
	untyped bool // the type being added has no Go type
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

// info is the info section of all documents.
var info = map[string]string{"title": "Kubernetes", "version": "v1.37.2+flyball"}

func newDocument(gv runtimeschema.GroupVersion, definitions []*resource.Definition) *document {
	d := &document{OpenAPI: "3.0.0", Info: info, Paths: map[string]map[string]*operation{}}
	d.types, d.custom = components{}, map[string]any{}
	for _, def := range definitions {
		if def.GroupVersion == gv && (def.OpenAPI != nil || !codec.IsUnstructured(def.New())) {
			d.add(def)
		}
	}
	d.Components.Schemas = d.custom
	for name, s := range d.types {
		d.Components.Schemas[name] = s
	}
	return d
}

// add describes a type, its resource and its subresources.
func (d *document) add(def *resource.Definition) {
	kind := def.GroupVersionKind()
	var ref, list *schema
	if d.untyped = def.OpenAPI != nil; d.untyped {
		ref, list = d.addCustom(def)
	} else {
		ref, list = d.addKind(def.New(), kind), d.addKind(def.NewList(), def.ListGroupVersionKind())
	}
	root := "/apis/" + def.GroupVersion.String()
	if def.GroupVersion.Group == "" {
		root = "/api/" + def.GroupVersion.Version
	}
	scope := ""
	if def.Namespaced {
		scope = "/namespaces/{namespace}"
		d.Paths[root+"/"+
			def.Plural] = map[string]*operation{"get": d.operation("list", kind, list, nil, "all namespaces")}
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
	if sub.New == nil || sub.Connect != nil {
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

func (d *document) addKind(obj runtime.Object, kind runtimeschema.GroupVersionKind) *schema {
	name := d.types.add(reflect.TypeOf(obj).Elem())
	s := d.types[name]
	if len(s.Kinds) == 0 {
		s.Kinds = []groupVersionKind{{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}}
	}
	return &schema{Ref: schemaPrefix + name}
}

// addCustom adds the schemas of a type without a Go type and of its list, and returns references to them.
//
// Source: k8s.io/apiextensions-apiserver pkg/controller/openapi/builder/builder.go buildListSchema.
func (d *document) addCustom(def *resource.Definition) (ref, list *schema) {
	name, s := def.OpenAPI()
	d.custom[name] = s
	d.types.add(objectMeta)
	ref = &schema{Ref: schemaPrefix + name}
	listKind := def.ListGroupVersionKind()
	docs := metav1.TypeMeta{}.SwaggerDoc()
	listName := name + "List"
	d.types[listName] = &schema{
		Type: "object", Description: listKind.Kind + " is a list of " + def.Kind, Required: []string{"items"},
		Properties: map[string]*schema{
			"apiVersion": {Type: "string", Description: docs["apiVersion"]},
			"kind":       {Type: "string", Description: docs["kind"]},
			"items": {
				Type: "array", Items: ref,
				Description: "List of " + def.Plural +
					". More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
			},
			"metadata": {
				AllOf:       []*schema{{Ref: schemaPrefix + d.types.add(reflect.TypeFor[metav1.ListMeta]())}},
				Description: metav1.PartialObjectMetadataList{}.SwaggerDoc()["metadata"],
			},
		},
		Kinds: []groupVersionKind{{Group: listKind.Group, Version: listKind.Version, Kind: listKind.Kind}},
	}
	return ref, &schema{Ref: schemaPrefix + listName}
}

// operation describes a verb of a resource. body is the schema of the request (nil: none), answer that of the response
// (nil: a Status).
func (d *document) operation(action string, kind runtimeschema.GroupVersionKind, answer, body *schema,
	of string,
) *operation {
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
	case "post", "put":
		op.Parameters = writeParameters
		if body != nil {
			op.RequestBody = &content{in(body)}
		}
	case "patch":
		op.Parameters = patchParameters
		op.RequestBody = &content{d.patches()}
	}
	return op
}

// patches are the kinds of patch that resources take. Clients choose by them.
func (d *document) patches() map[string]mediaType {
	all := map[string]mediaType{}
	for _, t := range []types.PatchType{types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType} {
		all[string(t)] = mediaType{Schema: &schema{Type: "object"}}
	}
	if !d.untyped {
		all[string(types.StrategicMergePatchType)] = mediaType{Schema: &schema{Type: "object"}}
	}
	return all
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
