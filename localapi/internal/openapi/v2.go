package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

// The document of OpenAPI v2 describes all types at once. Clients that do not find a type in version 3, or do not know
// that version, read it, in protobuf or in JSON.

const (
	protobufV2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	prefixV2   = "#/definitions/"

	preserves = "x-kubernetes-preserve-unknown-fields"
	kindsKey  = "x-kubernetes-group-version-kind"
)

// documentV2 returns the content of some documents of version 3 as one document of version 2.
//
// Source: k8s.io/kube-openapi pkg/builder.
func documentV2(documents []*document) (map[string]any, error) {
	definitions, paths := map[string]any{}, map[string]any{}
	for _, d := range documents {
		for name, s := range d.Components.Schemas {
			tree, err := treeOf(s)
			if err != nil {
				return nil, err
			}
			definitions[name] = schemaV2(tree)
			if tree[preserves] == true {
				// For kubectl, a type with some properties has no others, so it gets none at all.
				definitions[name] = map[string]any{"type": "object", kindsKey: tree[kindsKey]}
			}
		}
		for path, operations := range d.Paths {
			item := map[string]any{}
			for method, op := range operations {
				v2, err := operationV2(op)
				if err != nil {
					return nil, err
				}
				item[method] = v2
			}
			paths[path] = item
		}
	}
	return map[string]any{"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions}, nil
}

// treeOf returns a schema as decoded JSON.
func treeOf(s any) (map[string]any, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	return tree, json.Unmarshal(text, &tree)
}

// keywordsV2 are the keywords whose values are the same in both versions.
var keywordsV2 = []string{
	"default", "description", "enum", "example", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems",
	"maxLength",
	"maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "pattern",
	"required",
	"title", "type",
	"uniqueItems",
}

// schemaV2 returns a schema in version 2. It leaves out what version 2 cannot express, and what kubectl would take for
// more than it says: the schema then allows more.
//
// Source: k8s.io/apiextensions-apiserver v0.37.2 pkg/controller/openapi/v2/conversion.go ToStructuralOpenAPIV2,
// pkg/controller/openapi/builder/builder.go buildKubeNative.
func schemaV2(s map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range s {
		if slices.Contains(keywordsV2, key) || strings.HasPrefix(key, "x-") {
			out[key] = value
		}
	}
	if several, ok := s["allOf"].([]any); ok && len(several) == 1 {
		if only, ok := several[0].(map[string]any); ok {
			maps.Copy(out, schemaV2(only)) // a reference has siblings in version 2
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		out["$ref"] = prefixV2 + strings.TrimPrefix(ref, schemaPrefix)
	}
	if _, ok := s["oneOf"]; ok && s["type"] == nil { // a number or a string
		out["type"] = "string"
	}
	if s["x-kubernetes-int-or-string"] == true {
		out["type"], out["format"] = "string", "int-or-string"
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := s[key].(map[string]any); ok {
			out[key] = schemaV2(inner)
		}
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		all := map[string]any{}
		for name, p := range properties {
			if inner, ok := p.(map[string]any); ok {
				all[name] = schemaV2(inner)
			}
		}
		out["properties"] = all
	}
	relax(s, out)
	return out
}

// relax removes from out, which is s in version 2, what would refuse values that s allows.
func relax(s, out map[string]any) {
	if nullable(s) || s[preserves] == true {
		delete(out, "items")
		delete(out, "properties")
		if nullable(s) || out["type"] == "object" {
			delete(out, "type")
		}
	}
	if out["type"] == "array" && out["items"] == nil {
		delete(out, "type")
	}
	properties, _ := s["properties"].(map[string]any)
	if required, ok := s["required"].([]any); ok {
		out["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
			return nullable(properties[fmt.Sprint(name)])
		})
	}
	if nullable(s["additionalProperties"]) {
		delete(out, "required")
	}
}

func nullable(s any) bool {
	tree, _ := s.(map[string]any)
	return tree["nullable"] == true
}

func operationV2(op *operation) (map[string]any, error) {
	out := map[string]any{"operationId": op.OperationID, "produces": []string{"application/json", "application/yaml"}}
	if op.Action != "" {
		out["x-kubernetes-action"] = op.Action
	}
	if op.Kind != nil {
		out[kindsKey] = op.Kind
	}
	var parameters []any
	for _, p := range op.Parameters {
		parameters = append(parameters, map[string]any{
			"name": p.Name, "in": p.In, "description": p.Description, "type": p.Schema.Type, "uniqueItems": true,
		})
	}
	if op.RequestBody != nil {
		consumes := slices.Sorted(maps.Keys(op.RequestBody.Content))
		s, err := treeOf(op.RequestBody.Content[consumes[0]].Schema)
		if err != nil {
			return nil, err
		}
		out["consumes"] = consumes
		parameters = append(parameters,
			map[string]any{"name": "body", "in": "body", "required": true, "schema": schemaV2(s)})
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	responses := map[string]any{}
	for code, r := range op.Responses {
		s, err := treeOf(r.Content["application/json"].Schema)
		if err != nil {
			return nil, err
		}
		responses[code] = map[string]any{"description": r.Description, "schema": schemaV2(s)}
	}
	out["responses"] = responses
	return out, nil
}

// encodedV2 is the document of version 2 in both encodings.
type encodedV2 struct {
	json, proto served
	err         error
}

func encodeV2(documents []*document) encodedV2 {
	d, err := documentV2(documents)
	if err != nil {
		return encodedV2{err: err}
	}
	text, err := json.Marshal(d)
	if err != nil {
		return encodedV2{err: err}
	}
	parsed, err := openapiv2.ParseDocument(text)
	if err != nil {
		return encodedV2{err: err}
	}
	binary, err := proto.MarshalOptions{Deterministic: true}.Marshal(parsed)
	return encodedV2{json: newServed(text), proto: newServed(binary), err: err}
}

// ServeV2 answers /openapi/v2.
func (h *Handler) ServeV2(w http.ResponseWriter, r *http.Request) {
	all := h.v2()
	if all.err != nil {
		http.Error(w, "describe the types in OpenAPI v2: "+all.err.Error(), http.StatusInternalServerError)
		return
	}
	doc, contentType := all.json, "application/json"
	for _, accept := range r.Header.Values("Accept") {
		// Older clients write an @ where newer ones write a dot.
		if strings.Contains(strings.ReplaceAll(accept, "v2@v1.0", "v2.v1.0"), protobufV2) {
			doc, contentType = all.proto, protobufV2
		}
	}
	w.Header().Set("Vary", "Accept")
	doc.serve(w, r, contentType)
}
