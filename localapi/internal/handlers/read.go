package handlers

import (
	"context"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

// get handles a GET of the object or of its status.
func (x *exchange) get(ctx context.Context) (answer, error) {
	if err := x.refuseExport(); err != nil {
		return answer{}, err
	}
	if x.asOf > 0 {
		o, err := x.res.GetAt(ctx, x.info.Namespace, x.info.Name, x.asOf)
		if err != nil {
			return answer{}, err
		}
		return objectAnswer(http.StatusOK, o), nil
	}
	o, err := x.res.Get(ctx, x.info.Namespace, x.info.Name, x.query.Get("resourceVersion"))
	if err != nil {
		return answer{}, err
	}
	return objectAnswer(http.StatusOK, o), nil
}

// refuseExport returns an error if the query has the parameter export, which asked for an object without what its
// cluster had added. Lists ignore the parameter.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/get.go GetResource.
func (x *exchange) refuseExport() error {
	if len(x.query["export"]) == 0 {
		return nil
	}
	if value := x.query.Get("export"); value == "0" || strings.EqualFold(value, "false") {
		return nil
	}
	return apierrors.NewBadRequest("the export parameter, deprecated since v1.14, is no longer supported")
}

func (x *exchange) list(ctx context.Context) (answer, error) {
	o, err := x.registryListOptions()
	if err != nil {
		return answer{}, err
	}
	if x.asOf > 0 && o.Continue == "" {
		o.ResourceVersion, o.ResourceVersionMatch = strconv.FormatInt(x.asOf, 10), metav1.ResourceVersionMatchExact
	}
	result, err := x.res.List(ctx, o)
	if err != nil {
		return answer{}, err
	}
	return x.listAnswer(result), nil
}

func (x *exchange) registryListOptions() (registry.ListOptions, error) {
	o, err := x.listOptions()
	if err != nil {
		return registry.ListOptions{}, err
	}
	selection, err := x.selection(o)
	if err != nil {
		return registry.ListOptions{}, err
	}
	return registry.ListOptions{
		Selection: selection, ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.ResourceVersionMatch,
		Limit: o.Limit, Continue: o.Continue,
	}, nil
}

func (x *exchange) listAnswer(result registry.ListResult) answer {
	listMeta := metav1.ListMeta{
		ResourceVersion: strconv.FormatInt(result.Revision, 10), Continue: result.Continue,
		RemainingItemCount: result.Remaining,
	}
	if result.Shard != "" {
		listMeta.ShardInfo = &metav1.ShardInfo{Selector: result.Shard}
	}
	list := &pendingList{objects: result.Objects, ListMeta: listMeta}
	return answer{code: http.StatusOK, other: list, resourceVersion: listMeta.ResourceVersion}
}

// listObject returns the list object of a type with the given items.
func listObject(res *registry.Resource, objects []*watchcache.Object, listMeta metav1.ListMeta) runtime.Object {
	d := res.Definition
	list := d.NewList()
	list.GetObjectKind().SetGroupVersionKind(d.ListGroupVersionKind())
	if u, ok := list.(*unstructured.UnstructuredList); ok {
		u.SetResourceVersion(listMeta.ResourceVersion)
		u.SetContinue(listMeta.Continue)
		u.SetRemainingItemCount(listMeta.RemainingItemCount)
		if listMeta.ShardInfo != nil {
			if err := unstructured.SetNestedField(u.Object, listMeta.ShardInfo.Selector, "metadata", "shardInfo",
				"selector"); err != nil {
				panic(err) // cannot fail: metadata is a map
			}
		}
		u.Items = make([]unstructured.Unstructured, len(objects))
		for i, o := range objects {
			u.Items[i] = *o.Object.(*unstructured.Unstructured)
		}
		return list
	}
	v := reflect.ValueOf(list).Elem()
	v.FieldByName("ListMeta").Set(reflect.ValueOf(listMeta))
	items := reflect.MakeSlice(v.FieldByName("Items").Type(), len(objects), len(objects))
	for i, o := range objects {
		item := items.Index(i)
		item.Set(reflect.ValueOf(o.Object).Elem())
		// The items of a typed list have no kind of their own.
		item.Addr().Interface().(runtime.Object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	v.FieldByName("Items").Set(items)
	return list
}
