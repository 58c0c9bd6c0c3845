package customresource

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"
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

// row returns the cells of obj.
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
		if t.IsZero() {
			return "<unknown>"
		}
		return duration.HumanDuration(now.Sub(t.Time))
	}
	return nil
}
