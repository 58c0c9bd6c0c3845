package customresource

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// APIService is the kind that says where the versions of a cluster's API are served.
var APIService = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

// apiService is what the rules read of an APIService.
type apiService struct {
	Spec struct {
		Service *struct {
			Namespace, Name string
			Port            int
		}
		Group, Version        string
		InsecureSkipTLSVerify bool
		CABundle              []byte
		GroupPriorityMinimum  int32
		VersionPriority       int32
	}
	Status struct {
		Conditions []struct{ Type, Status, Reason string }
	}
}

func readService(obj runtime.Object) (s apiService) {
	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil { // the schema refuses what does not fit
		return apiService{}
	}
	return s
}

// APIServices returns the definition of APIServices. Their Go type belongs to kube-aggregator, so they have none here:
// they are served as custom resources are, without protobuf, but with rules in Go. This server calls no Service.
//
// Source: k8s.io/kube-aggregator v0.37.2 pkg/registry/apiservice, pkg/apis/apiregistration/validation/validation.go.
func APIServices() (*resource.Definition, error) {
	compiled, err := apiServices()
	if err != nil {
		return nil, err
	}
	d := *compiled
	return &d, nil
}

// apiServices compiles the schema once in the process, because that would take a quarter of a server's start.
var apiServices = sync.OnceValues(compileAPIServices)

func compileAPIServices() (*resource.Definition, error) {
	all, err := Definitions(apiServiceSchema(), nil)
	if err != nil {
		return nil, err
	}
	d := all[0]
	schemaErrors, statusErrors, openAPI := d.ValidateCreate, d.ValidateStatusUpdate, d.OpenAPI
	d.Versions, d.StorageVersion = nil, ""
	d.KindOptional = true
	d.Warnings = nil
	d.OpenAPI = func() (string, *spec.Schema) {
		_, s := openAPI()
		return "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService", s
	}
	d.ValidateName = func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	d.PrepareCreate = func(_ context.Context, obj runtime.Object) {
		obj.(*unstructured.Unstructured).Object["status"] = map[string]any{"conditions": []any{available(obj)}}
	}
	d.PrepareUpdate = func(_ context.Context, obj, old runtime.Object) {
		before := old.DeepCopyObject().(*unstructured.Unstructured)
		obj.(*unstructured.Unstructured).Object["status"] = before.Object["status"]
	}
	d.ValidateCreate = func(obj runtime.Object) field.ErrorList {
		if errs := schemaErrors(obj); len(errs) > 0 {
			return errs
		}
		return verify.Errors(nil, func(f verify.Field) {
			validateService(f, obj.(*unstructured.Unstructured).GetName(), readService(obj))
		})
	}
	d.ValidateUpdate = func(obj, _ runtime.Object) field.ErrorList { return d.ValidateCreate(obj) }
	d.ValidateStatusUpdate = func(obj, old runtime.Object) field.ErrorList {
		return verify.Errors(nil, func(f verify.Field) {
			f.Add(statusErrors(obj, old)...)
			for i, c := range readService(obj).Status.Conditions {
				verify.Supported(f.Child("status.conditions").Index(i), "status", metav1.ConditionStatus(c.Status),
					metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown)
			}
		})
	}
	doc := metav1.ObjectMeta{}.SwaggerDoc()
	d.Columns = []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: doc["name"]},
		{Name: "Service", Type: "string", Description: "The reference to the service that hosts this API endpoint."},
		{Name: "Available", Type: "string", Description: "Whether this service is available."},
		{Name: "Age", Type: "string", Description: doc["creationTimestamp"]},
	}
	d.Row = serviceRow
	return d, nil
}

// apiServiceSchema returns the shape of the type, as if a definition gave it.
func apiServiceSchema() *apiextensionsv1.CustomResourceDefinition {
	type props = apiextensionsv1.JSONSchemaProps
	text, number := props{Type: "string"}, props{Type: "integer", Format: "int32"}
	object := func(p map[string]props, required ...string) props {
		return props{Type: "object", Properties: p, Required: required}
	}
	port := number
	port.Default = &apiextensionsv1.JSON{Raw: []byte("443")}
	condition := object(map[string]props{
		"type": text, "status": text, "reason": text, "message": text,
		"lastTransitionTime": {Type: "string", Format: "date-time", Nullable: true},
	})
	conditions := props{
		Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition},
		XListType: ptr.To("map"), XListMapKeys: []string{"type"},
	}
	condition.Required = []string{"type"}
	whole := object(map[string]props{
		"spec": object(map[string]props{
			"service": object(map[string]props{"namespace": text, "name": text, "port": port}), "group": text,
			"version": text, "insecureSkipTLSVerify": {Type: "boolean"},
			"caBundle": {Type: "string", Format: "byte"}, "groupPriorityMinimum": number, "versionPriority": number,
		}),
		"status": object(map[string]props{"conditions": conditions}),
	})
	names := apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "apiservices", Singular: "apiservice", Kind: APIService.Kind, ListKind: "APIServiceList",
		Categories: []string{"api-extensions"},
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "apiservices." + APIService.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: APIService.Group, Scope: apiextensionsv1.ClusterScoped, Names: names,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: APIService.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				},
			}},
		},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{AcceptedNames: names},
	}
}

// available returns the condition of a new APIService.
func available(obj runtime.Object) map[string]any {
	status, reason, message := "True", "Local", "Local APIServices are always available"
	if readService(obj).Spec.Service != nil {
		status, reason, message = "False", "NotServed", "this server passes no requests to other servers"
	}
	return map[string]any{
		"type": "Available", "status": status, "reason": reason, "message": message,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}
}

func validateService(f verify.Field, name string, s apiService) {
	in := &s.Spec
	want := in.Version + "." + in.Group
	f.Rejectf("metadata.name", name != want, name, "must be `spec.version+\".\"+spec.group`: %q", want)
	f = f.Child("spec")
	f.MatchIfSet("group", in.Group, validation.IsDNS1123Subdomain)
	f.Require("group", in.Group != "" || in.Version == "v1",
		"only v1 may have an empty group and it better be legacy kube")
	f.Match("version", in.Version, validation.IsDNS1035Label)
	group, version := in.GroupPriorityMinimum, in.VersionPriority
	f.Reject("groupPriorityMinimum", group <= 0 || group > 20000, group, "must be positive and less than 20000")
	f.Reject("versionPriority", version <= 0 || version > 1000, version, "must be positive and less than 1000")
	bundle := len(in.CABundle) > 0
	if in.Service == nil {
		f.Reject("caBundle", bundle, fmt.Sprintf("%d bytes", len(in.CABundle)),
			"local APIServices may not have a caBundle")
		f.Reject("insecureSkipTLSVerify", in.InsecureSkipTLSVerify, true,
			"local APIServices may not have insecureSkipTLSVerify")
		return
	}
	f.Require("service.namespace", in.Service.Namespace != "", "")
	f.Require("service.name", in.Service.Name != "", "")
	for _, problem := range validation.IsValidPortNum(in.Service.Port) {
		f.Reject("service.port", true, in.Service.Port, "port is not valid: "+problem)
	}
	f.Reject("insecureSkipTLSVerify", in.InsecureSkipTLSVerify && bundle, true,
		"may not be true if caBundle is present")
}

func serviceRow(obj runtime.Object, now time.Time) []any {
	s, u, where, is := readService(obj), obj.(*unstructured.Unstructured), "Local", "Unknown"
	if in := s.Spec.Service; in != nil {
		where = in.Namespace + "/" + in.Name
	}
	for _, c := range s.Status.Conditions {
		if c.Type != "Available" {
			continue
		}
		is = c.Status
		if c.Status != "True" && c.Reason != "" {
			is = fmt.Sprintf("%s (%s)", c.Status, c.Reason)
		}
	}
	return []any{u.GetName(), where, is, resource.Age(u.GetCreationTimestamp(), now)}
}
