package customresource

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// printer prints objects as rows of a table.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/tableconvertor/tableconvertor.go.
type printer struct {
	columns []metav1.TableColumnDefinition
	paths   []string // of all columns but the first
}

// newPrinter returns a printer for the columns of a definition. If the definition has none, it prints the age.
func newPrinter(columns []apiextensionsv1.CustomResourceColumnDefinition) (*printer, error) {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{
			{
				Name: "Age", Type: "date", Description: docs["creationTimestamp"],
				JSONPath: ".metadata.creationTimestamp",
			},
		}
	}
	p := &printer{
		columns: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
		},
	}
	for _, c := range columns {
		if _, err := parsePath(c.JSONPath); err != nil {
			return nil, fmt.Errorf("unrecognized column definition %q", c.JSONPath)
		}
		p.paths = append(p.paths, c.JSONPath)
		description := c.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		p.columns = append(p.columns, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
		})
	}
	return p, nil
}

func parsePath(path string) (*jsonpath.JSONPath, error) {
	p := jsonpath.New("path").AllowMissingKeys(true)
	return p, p.Parse("{" + path + "}")
}

// find returns the value that a path leads to in an object, or nil if there is none. A parsed path has state while it
// is followed, so every reader parses its own.
func find(path string, obj map[string]any) (value any, p *jsonpath.JSONPath) {
	p, err := parsePath(path)
	if err != nil {
		return nil, p
	}
	results, err := p.FindResults(obj)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil, p
	}
	return results[0][0].Interface(), p
}

func (p *printer) row(obj runtime.Object, now time.Time) []any {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	cells := []any{u.GetName()}
	for i, path := range p.paths {
		value, parsed := find(path, u.Object)
		column := p.columns[i+1]
		if column.Type != "string" || value == nil {
			cells = append(cells, cell(column.Type, value, now))
			continue
		}
		var b bytes.Buffer
		if err := parsed.PrintResults(&b, []reflect.Value{reflect.ValueOf(value)}); err != nil {
			cells = append(cells, nil)
			continue
		}
		cells = append(cells, b.String())
	}
	return cells
}

// cell converts a value to a column's type, or returns nil if it has another type.
func cell(columnType string, value any, now time.Time) any {
	switch columnType {
	case "integer":
		switch v := value.(type) {
		case int64:
			return v
		case float64:
			return int64(v)
		}
	case "number":
		switch v := value.(type) {
		case int64:
			return float64(v)
		case float64:
			return v
		}
	case "boolean":
		if v, ok := value.(bool); ok {
			return v
		}
	case "date":
		text, ok := value.(string)
		if !ok {
			return nil
		}
		var t metav1.Time
		if err := t.UnmarshalQueryParameter(text); err != nil {
			return "<invalid>"
		}
		return resource.Age(t, now)
	}
	return nil
}

// scale holds the paths of a scale's values in an object. The paths have no leading dot.
type scale struct {
	spec, status, selector string
}

func newScale(s *apiextensionsv1.CustomResourceSubresourceScale) scale {
	trim := func(path string) string { return strings.TrimPrefix(path, ".") }
	return scale{
		spec: trim(s.SpecReplicasPath), status: trim(s.StatusReplicasPath),
		selector: trim(ptr.Deref(s.LabelSelectorPath, "")),
	}
}

func steps(path string) []string { return strings.Split(path, ".") }

// subresource returns the scale as a subresource.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/etcd.go ScaleREST.
func (s scale) subresource() resource.Subresource {
	path := fieldpath.Path{}
	for _, step := range steps(s.spec) {
		path = append(path, fieldpath.PathElement{FieldName: ptr.To(step)})
	}
	return resource.Subresource{
		Kind:  autoscalingv1.SchemeGroupVersion.WithKind("Scale"),
		New:   func() runtime.Object { return &autoscalingv1.Scale{} },
		Verbs: []string{"get", "patch", "update"}, Replicas: path, Project: s.project, Merge: s.merge,
	}
}

// unset stands for a missing number of replicas while a scale is being changed.
const unset = math.MinInt32

func (s scale) project(_ context.Context, obj runtime.Object) (runtime.Object, error) {
	u := obj.(*unstructured.Unstructured)
	replicas, found, err := unstructured.NestedInt64(u.Object, steps(s.spec)...)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", "."+s.spec))
	}
	current, _, err := unstructured.NestedInt64(u.Object, steps(s.status)...)
	if err != nil {
		return nil, err
	}
	selector := ""
	if s.selector != "" {
		if selector, _, err = unstructured.NestedString(u.Object, steps(s.selector)...); err != nil {
			return nil, err
		}
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(),
			ResourceVersion: u.GetResourceVersion(), CreationTimestamp: u.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(replicas)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(current), Selector: selector},
	}, nil
}

func (s scale) merge(_ context.Context, obj, sub runtime.Object) error {
	u, view := obj.(*unstructured.Unstructured), sub.(*autoscalingv1.Scale)
	if view.Spec.Replicas == unset {
		return apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", "."+s.spec))
	}
	if errs := verify.Errors(nil, func(f verify.Field) {
		f.Nonnegative("spec.replicas", int64(view.Spec.Replicas))
	}); len(errs) > 0 {
		return apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), u.GetName(), errs)
	}
	before, _, err := unstructured.NestedInt64(u.Object, steps(s.spec)...)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(u.Object, int64(view.Spec.Replicas), steps(s.spec)...); err != nil {
		return err
	}
	if before != int64(view.Spec.Replicas) {
		u.SetGeneration(u.GetGeneration() + 1)
	}
	return nil
}

// validate validates the values that a scale shows.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/validator.go ValidateScaleSpec,
// ValidateScaleStatus.
func (s scale) validate(obj runtime.Object, statusOnly bool) field.ErrorList {
	content := contentOf(obj)
	return verify.Errors(nil, func(f verify.Field) {
		if !statusOnly {
			validateReplicas(f, content, s.spec)
		}
		validateReplicas(f, content, s.status)
		if s.selector != "" {
			if selector, _, err := unstructured.NestedString(content, steps(s.selector)...); err != nil {
				f.Reject("."+s.selector, true, selector, err.Error())
			}
		}
	})
}

func validateReplicas(f verify.Field, content map[string]any, path string) {
	n, _, err := unstructured.NestedInt64(content, steps(path)...)
	if err != nil {
		f.Reject("."+path, true, n, err.Error())
		return
	}
	f.Reject("."+path, n < 0, n, "should be a non-negative integer")
	f.Rejectf("."+path, n > math.MaxInt32, n, "should be less than or equal to %v", math.MaxInt32)
}
