package handlers

import (
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
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

// convertible reports whether the answer can be converted to kind. Reviews have no tables, and of the subresources only
// two have.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/rest.go AllowsMediaTypeTransform.
func (x *exchange) convertible(kind schema.GroupVersionKind) bool {
	if kind.Group != metav1.GroupName || kind.Version != "v1" && kind.Version != "v1beta1" {
		return false
	}
	switch kind.Kind {
	case "Table":
		sub := x.info.Subresource
		return x.res.Definition.Review == nil && (sub == "" || sub == "status" || sub == "scale")
	case "PartialObjectMetadata", "PartialObjectMetadataList":
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
		listMeta := metav1.ListMeta{ResourceVersion: resource.Meta(obj).GetResourceVersion()}
		return x.table(listMeta, []runtime.Object{obj}, true)
	case isList != (x.out.As.Kind == "PartialObjectMetadataList"):
		return nil, codec.NotConvertible(x.out.As.Kind, x.res.Definition.GroupVersionKind(), isList)
	case isList:
		return x.partialList(list), nil
	}
	return x.partial(obj), nil
}

// partial returns the metadata of obj. It leaves out the annotations in which a member of a family stores what it has
// no fields for.
func (x *exchange) partial(obj runtime.Object) *metav1.PartialObjectMetadata {
	if f := x.res.Definition.Family; f != nil {
		if stored, ok := f.Convert(obj, f.Stored().Kind); ok {
			obj = stored
		}
	}
	partial := meta.AsPartialObjectMetadata(resource.Meta(obj))
	partial.SetGroupVersionKind(x.out.As.GroupVersion().WithKind("PartialObjectMetadata"))
	return partial
}

func (x *exchange) partialList(list *pendingList) runtime.Object {
	partials := &metav1.PartialObjectMetadataList{ListMeta: list.ListMeta}
	partials.SetGroupVersionKind(x.out.As.GroupVersion().WithKind("PartialObjectMetadataList"))
	for _, o := range list.objects {
		partials.Items = append(partials.Items, *x.partial(o.Object))
	}
	return partials
}

// defaultColumns are the columns of types that define none.
var defaultColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
}

// scaleColumns are the columns of the scale of any type.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/printers/internalversion/printers.go printScale.
var scaleColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	{Name: "Desired", Type: "integer", Description: autoscalingv1.ScaleSpec{}.SwaggerDoc()["replicas"]},
	{Name: "Available", Type: "integer", Description: autoscalingv1.ScaleStatus{}.SwaggerDoc()["replicas"]},
	{Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
}

func scaleRow(s *autoscalingv1.Scale, now time.Time) []any {
	return []any{
		s.Name, int64(s.Spec.Replicas), int64(s.Status.Replicas), resource.Age(s.CreationTimestamp, now),
	}
}

// tableOptions returns the options of a table, if the client asks for one.
func (x *exchange) tableOptions() (metav1.TableOptions, error) {
	o := metav1.TableOptions{IncludeObject: metav1.IncludeObjectPolicy(x.query.Get("includeObject"))}
	if errs := validation.ValidateTableOptions(&o); x.out.As.Kind == "Table" && len(errs) > 0 {
		return o, apierrors.NewBadRequest(
			fmt.Sprintf("Unable to convert to Table as requested: %v", errs.ToAggregate()),
		)
	}
	return o, nil
}

// table prints objects. Watches send the columns with the first event only.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/response.go asTable.
func (x *exchange) table(listMeta metav1.ListMeta, objects []runtime.Object, columns bool) (runtime.Object, error) {
	o, err := x.tableOptions()
	if err != nil {
		return nil, err
	}
	d, isScale := x.res.Definition, x.info.Subresource == "scale"
	t := &metav1.Table{ListMeta: listMeta, Rows: []metav1.TableRow{}}
	t.SetGroupVersionKind(x.out.As.GroupVersion().WithKind("Table"))
	if columns {
		switch t.ColumnDefinitions = d.Columns; {
		case isScale:
			t.ColumnDefinitions = scaleColumns
		case d.Row == nil:
			t.ColumnDefinitions = defaultColumns
		}
	}
	now := time.Now()
	for _, obj := range objects {
		m := resource.Meta(obj)
		var row metav1.TableRow
		switch {
		case isScale:
			row.Cells = scaleRow(obj.(*autoscalingv1.Scale), now)
		case d.Row == nil:
			row.Cells = []any{m.GetName(), m.GetCreationTimestamp().UTC().Format(time.RFC3339)}
		default:
			row.Cells = d.Row(obj, now)
		}
		if d.RowConditions != nil && !isScale {
			row.Conditions = d.RowConditions(obj)
		}
		switch o.IncludeObject {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			row.Object.Object = obj
		default:
			row.Object.Object = x.partial(obj)
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}
