package handlers

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

// pendingList is a list before it is converted or encoded. No codec ever gets it.
type pendingList struct {
	metav1.TypeMeta
	metav1.ListMeta
	objects []*watchcache.Object
}

// DeepCopyObject implements [runtime.Object].
func (l *pendingList) DeepCopyObject() runtime.Object { c := *l; return &c }

// convertible reports whether any resource can be converted to kind.
func convertible(kind schema.GroupVersionKind) bool {
	if kind.Group != metav1.GroupName || kind.Version != "v1" && kind.Version != "v1beta1" {
		return false
	}
	switch kind.Kind {
	case "Table", "PartialObjectMetadata", "PartialObjectMetadataList":
		return true
	}
	return false
}

// convert turns an object or list into what the client asked for.
func (x *exchange) convert(obj runtime.Object) (runtime.Object, error) {
	list, isList := obj.(*pendingList)
	_, isStatus := obj.(*metav1.Status)
	switch {
	case isList && x.out.As.Kind == "":
		return listObject(x.res, list.objects, list.ListMeta), nil
	case isStatus, x.out.As.Kind == "":
		return obj, nil
	case x.out.As.Kind == "Table" && isList:
		objects := make([]runtime.Object, len(list.objects))
		for i, o := range list.objects {
			objects[i] = o.Object
		}
		return x.table(list.ListMeta, objects, true)
	case x.out.As.Kind == "Table":
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		return x.table(metav1.ListMeta{ResourceVersion: m.GetResourceVersion()}, []runtime.Object{obj}, true)
	case isList != (x.out.As.Kind == "PartialObjectMetadataList"):
		return nil, codec.NotConvertible(x.out.As.Kind, x.res.Definition.GroupVersionKind(), isList)
	case isList:
		return x.partialList(list)
	}
	return x.partial(obj)
}

// partial returns the metadata of obj. It leaves out the annotations in which a member of a family stores what it has
// no fields for.
func (x *exchange) partial(obj runtime.Object) (*metav1.PartialObjectMetadata, error) {
	if f := x.res.Definition.Family; f != nil {
		if stored, ok := f.Convert(obj, f.Stored().Kind); ok {
			obj = stored
		}
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	partial := meta.AsPartialObjectMetadata(m)
	partial.SetGroupVersionKind(x.out.As.GroupVersion().WithKind("PartialObjectMetadata"))
	return partial, nil
}

func (x *exchange) partialList(list *pendingList) (runtime.Object, error) {
	partials := &metav1.PartialObjectMetadataList{ListMeta: list.ListMeta}
	partials.SetGroupVersionKind(x.out.As.GroupVersion().WithKind("PartialObjectMetadataList"))
	for _, o := range list.objects {
		partial, err := x.partial(o.Object)
		if err != nil {
			return nil, err
		}
		partials.Items = append(partials.Items, *partial)
	}
	return partials, nil
}

// defaultColumns are the columns of types that define none.
var defaultColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
}

// table prints objects. Watches send the columns with the first event only.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/response.go asTable.
func (x *exchange) table(listMeta metav1.ListMeta, objects []runtime.Object, columns bool) (runtime.Object, error) {
	o := metav1.TableOptions{IncludeObject: metav1.IncludeObjectPolicy(x.query.Get("includeObject"))}
	if errs := validation.ValidateTableOptions(&o); len(errs) > 0 {
		return nil, apierrors.NewBadRequest(
			fmt.Sprintf("Unable to convert to Table as requested: %v", errs.ToAggregate()),
		)
	}
	d := x.res.Definition
	t := &metav1.Table{ListMeta: listMeta, Rows: []metav1.TableRow{}}
	t.SetGroupVersionKind(x.out.As.GroupVersion().WithKind("Table"))
	if columns {
		if t.ColumnDefinitions = d.Columns; d.Row == nil {
			t.ColumnDefinitions = defaultColumns
		}
	}
	now := time.Now()
	for _, obj := range objects {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		var row metav1.TableRow
		if d.Row == nil {
			row.Cells = []any{m.GetName(), m.GetCreationTimestamp().UTC().Format(time.RFC3339)}
		} else {
			row.Cells = d.Row(obj, now)
		}
		if d.RowConditions != nil {
			row.Conditions = d.RowConditions(obj)
		}
		switch o.IncludeObject {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object.Object = obj
		default:
			if row.Object.Object, err = x.partial(obj); err != nil {
				return nil, err
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
