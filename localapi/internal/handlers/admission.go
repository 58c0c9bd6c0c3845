package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// admission returns the admission of the request, or nil if no plugin would do anything. The attributes that differ
// between the request's writes are not set.
func (x *exchange) admission() *admission.Review {
	d := x.res.Definition
	if x.api.Admission.Idle(d.GroupResource()) {
		return nil
	}
	kind := d.GroupVersionKind()
	s := &admissionServer{api: x.api, res: x.res}
	if sub, ok := d.Subresources[x.info.Subresource]; ok {
		kind, s.sub = sub.Kind, &sub
	}
	x.admitted = &admission.Review{Chain: x.api.Admission, Request: admission.Attributes{
		Kind: kind, Resource: d.GroupVersionResource(), Subresource: x.info.Subresource,
		Namespace: x.target.Namespace, Name: x.info.Name, User: x.user, Server: s,
		Warn: x.warn, Annotate: x.annotate,
	}}
	return x.admitted
}

// admitting adds the request's admission to the options of its writes. o has what the client sent.
func (x *exchange) admitting(w registry.WriteOptions, o metav1.UpdateOptions) registry.WriteOptions {
	review := x.admission()
	if review == nil {
		return w
	}
	review.Options, review.Request.DryRun = o, w.DryRun
	review.Request.Name = cmp.Or(review.Request.Name, x.sentName)
	w.Admission = review
	return w
}

func (x *exchange) deleting(o metav1.DeleteOptions) registry.Admission {
	review := x.admission()
	if review == nil {
		return nil
	}
	o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	review.Deletion, review.Request.DryRun = &o, len(o.DryRun) > 0
	return review
}

// named returns the admission with the name of the object that the body of a create names.
func named(w registry.WriteOptions, name string, d *resource.Definition) registry.WriteOptions {
	review, ok := w.Admission.(*admission.Review)
	if !ok {
		return w
	}
	r := &review.Request
	r.Name = cmp.Or(r.Name, name)
	if d.GroupVersionResource() == corev1.SchemeGroupVersion.WithResource("namespaces") {
		r.Namespace = cmp.Or(r.Namespace, r.Name)
	}
	return w
}

// admissionServer answers the questions of plugins about the server.
type admissionServer struct {
	api *API
	res *registry.Resource
	sub *resource.Subresource // nil: the object itself, or its status
}

// Equivalents implements [admission.Server].
func (s *admissionServer) Equivalents() (all []admission.Equivalent) {
	d := s.res.Definition
	for _, kind := range d.Kinds() {
		gvr := kind.GroupVersion().WithResource(d.Plural)
		if kind == d.GroupVersionKind() || s.api.Resource(gvr) == nil {
			continue
		}
		if s.sub != nil {
			kind = s.sub.Kind
		}
		all = append(all, admission.Equivalent{Resource: gvr, Kind: kind})
	}
	return all
}

// member returns the resource whose objects have a kind.
func (s *admissionServer) member(kind schema.GroupVersionKind) *registry.Resource {
	if kind == s.res.Definition.GroupVersionKind() {
		return s.res
	}
	return s.api.Resource(kind.GroupVersion().WithResource(s.res.Definition.Plural))
}

// New implements [admission.Server].
func (s *admissionServer) New(kind schema.GroupVersionKind) runtime.Object {
	if s.sub != nil && kind == s.sub.Kind {
		return s.sub.New()
	}
	return s.member(kind).New()
}

// Convert implements [admission.Server].
func (s *admissionServer) Convert(ctx context.Context, obj runtime.Object,
	kind schema.GroupVersionKind,
) (runtime.Object, error) {
	if obj.GetObjectKind().GroupVersionKind() == kind {
		return obj, nil
	}
	return s.res.Convert(ctx, obj, kind)
}

// Types implements [admission.Server].
func (s *admissionServer) Types(kind schema.GroupVersionKind) managedfields.TypeConverter {
	if s.sub == nil || kind != s.sub.Kind {
		if types := s.member(kind).Definition.Types; types != nil {
			return types()
		}
	}
	return s.api.Managers.BuiltIn
}

// Complete implements [admission.Server].
func (s *admissionServer) Complete(obj runtime.Object) error {
	kind := obj.GetObjectKind().GroupVersionKind()
	r := s.member(kind)
	if r == nil || s.sub != nil && kind == s.sub.Kind && kind != s.res.Definition.GroupVersionKind() {
		return nil
	}
	if r.Definition.Coerce != nil {
		if _, err := r.Definition.Coerce(obj); err != nil {
			return err
		}
	}
	if r.Definition.Default != nil {
		r.Definition.Default(obj)
	}
	return nil
}

// Namespace implements [admission.Server].
func (s *admissionServer) Namespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	o, err := s.api.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Get(ctx, "", name, "")
	if err != nil {
		return nil, err
	}
	ns, ok := o.Object.(*corev1.Namespace)
	if !ok {
		return nil, fmt.Errorf("namespace %s is a %T", name, o.Object)
	}
	return ns, nil
}

// annotate adds to the record of the request in the audit log. A key that is there keeps its value.
func (x *exchange) annotate(key, value string) {
	if x.annotations == nil {
		x.annotations = map[string]string{}
	}
	if _, ok := x.annotations[key]; !ok {
		x.annotations[key] = value
	}
}

// admitConnection has the plugins decide about a connection.
func (x *exchange) admitConnection(ctx context.Context, sub resource.Subresource) error {
	review := x.admission()
	if review == nil {
		return nil
	}
	options := sub.New()
	options.GetObjectKind().SetGroupVersionKind(sub.Kind)
	if err := x.connectOptions(options); err != nil {
		return err
	}
	return review.Connect(ctx, options)
}

// connectOptions parses the query, and for a proxy the rest of the path, into the options of a connection. Errors:
// BadRequest.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/rest.go getRequestOptions.
func (x *exchange) connectOptions(into runtime.Object) error {
	query := url.Values{}
	maps.Copy(query, x.query)
	if x.info.Subresource == "proxy" {
		path := strings.Join(x.target.Rest, "/")
		if path != "" {
			path = "/" + path
		}
		if strings.HasSuffix(x.r.URL.Path, "/") && !strings.HasSuffix(path, "/") {
			path += "/"
		}
		query.Set("path", path)
	}
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		values := query[name]
		if name == "" || len(values) == 0 {
			continue
		}
		if err := setOption(v.Field(i), values); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	return nil
}

// setOption sets a field to the values that a query has for it. As in a real server, a boolean without a value is true.
func setOption(field reflect.Value, values []string) error {
	switch field.Kind() {
	case reflect.String:
		field.SetString(values[0])
		return nil
	case reflect.Bool:
		field.SetBool(values[0] != "false" && values[0] != "0")
		return nil
	case reflect.Slice:
		if field.Type().Elem().Kind() == reflect.String {
			field.Set(reflect.ValueOf(values))
			return nil
		}
	}
	text := "[" + strings.Join(values, ",") + "]"
	if field.Kind() != reflect.Slice {
		text = values[0]
	}
	return json.Unmarshal([]byte(text), field.Addr().Interface())
}
