package localapi

import (
	"fmt"
	"testing"
)

// compareParameters compares what both servers let users do with admission policies that have parameters.
func compareParameters(t *testing.T, real, ours *server) {
	type object = map[string]any
	kinds := []any{
		nil,
		object{"apiVersion": "v1", "kind": "ConfigMap"},
		object{"apiVersion": "v1", "kind": "Secret"},
		object{"apiVersion": "v1", "kind": "NoSuch"},
		object{"apiVersion": "nosuch.example.com/v1", "kind": "None"},
	}
	refs := []any{
		nil,
		object{"name": "one"},
		object{"name": "one", "namespace": "x"},
		object{"name": "two", "namespace": "x"},
		object{"selector": object{}},
		object{"selector": object{}, "namespace": "x"},
	}
	var requests []request
	for kind, plural := range map[string]string{
		"Validating": "validatingadmissionpolic", "Mutating": "mutatingadmissionpolic",
	} {
		root := "/apis/" + policyGroup + "/v1/" + plural
		write := func(kind, name string, spec object) object {
			return object{
				"apiVersion": policyGroup + "/v1", "kind": kind, "metadata": object{"name": name}, "spec": spec,
			}
		}
		for i, params := range kinds {
			spec := object{
				"paramKind": params, "matchConstraints": object{"resourceRules": []any{object{
					"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"},
					"resources": []any{"nosuch"},
				}}},
			}
			if kind == "Mutating" {
				spec["reinvocationPolicy"] = "Never"
				spec["mutations"] = []any{object{"patchType": "ApplyConfiguration", "applyConfiguration": object{
					"expression": "Object{}",
				}}}
			} else {
				spec["validations"] = []any{object{"expression": "true"}}
			}
			name := fmt.Sprint("stored-", i)
			for _, s := range []*server{real, ours} {
				s.create(t, plural+"ies", write(kind+"AdmissionPolicy", name, spec))
			}
			requests = append(requests,
				request{"POST", root + "ies", encode(write(kind+"AdmissionPolicy", "new", spec))},
				request{"PATCH", root + "ies/stored-0", encode(object{"spec": object{"paramKind": params}})},
				request{"PATCH", root + "ies/stored-1", encode(object{"spec": object{"paramKind": params}})},
				request{"APPLY", root + "ies/new", encode(write(kind+"AdmissionPolicy", "new", spec))})
			for n, ref := range refs {
				spec := object{"policyName": name}
				if ref, ok := ref.(object); ok {
					ref["parameterNotFoundAction"] = "Deny"
					spec["paramRef"] = ref
				}
				if kind == "Validating" {
					spec["validationActions"] = []any{"Deny"}
				}
				bound := fmt.Sprint("stored-", i, "-", n)
				b := kind + "AdmissionPolicyBinding"
				for _, s := range []*server{real, ours} {
					s.create(t, plural+"ybindings", write(b, bound, spec))
				}
				requests = append(requests, request{"POST", root + "ybindings", encode(write(b, "new", spec))},
					request{"PATCH", root + "ybindings/" + bound, encode(object{"metadata": object{"labels": object{
						"a": "b",
					}}})})
				spec["policyName"] = "nosuch"
				requests = append(requests, request{"POST", root + "ybindings", encode(write(b, "new", spec))})
			}
		}
	}
	compareWrites(t, real, ours, requests, "guard-0", "guard-of-one-0", "guard-of-all-0", "all-0", "root")
}

// create creates an object of the group of admission policies as an administrator.
func (s *server) create(t *testing.T, plural string, o map[string]any) {
	t.Helper()
	err := s.admin.AdmissionregistrationV1().RESTClient().Post().Resource(plural).
		SetHeader("Content-Type", "application/json").Body([]byte(encode(o))).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
}
