package live

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer"
)

// List is a list of objects.
type List interface {
	metav1.ListInterface
	runtime.Object
}

// Get reads the object with that key, whose name is not empty, into obj.
func (s *Server) Get(ctx context.Context, k kinds.Kind, key types.NamespacedName, obj informer.Object) error {
	accept := kinds.Accept(obj, s.Protobuf)
	if k.Form == kinds.Metadata {
		accept = kinds.JSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	}
	contentType, data, err := s.Send(ctx, Request{Verb: http.MethodGet, GVK: k.GVK, Key: key, Accept: accept})
	if err != nil {
		return err
	}
	got, err := k.Decode(s.Scheme, contentType, data)
	if err != nil {
		return err
	}
	kinds.Set(obj, got)
	return nil
}

// List reads the objects of kind k in a namespace ("" means all) that params select into list.
func (s *Server) List(ctx context.Context, k kinds.Kind, namespace string, params url.Values, list List) error {
	accept := kinds.Accept(list, s.Protobuf)
	if k.Form == kinds.Metadata {
		accept = kinds.JSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	}
	contentType, data, err := s.Send(ctx, Request{
		Verb: http.MethodGet, GVK: k.GVK, Key: types.NamespacedName{Namespace: namespace}, Params: params,
		Accept: accept,
	})
	if err != nil {
		return err
	}
	fresh := reflect.New(reflect.TypeOf(list).Elem()).Interface().(List) // Fields that list had must not stay.
	if err := kinds.Decode(contentType, data, fresh); err != nil {
		return err
	}
	answered := fresh.GetObjectKind().GroupVersionKind()
	// A list in JSON may have a kind of another name.
	if strings.HasPrefix(contentType, kinds.Protobuf) && answered != k.List() {
		return fmt.Errorf("list %s: %w", k.GVK.Kind, kinds.ErrOtherKind)
	}
	fresh.GetObjectKind().SetGroupVersionKind(k.List())
	err = meta.EachListItem(fresh, func(item runtime.Object) error {
		item.GetObjectKind().SetGroupVersionKind(k.GVK)
		return nil
	})
	if err != nil {
		return fmt.Errorf("decode response: %w", err)
	}
	kinds.Set(list, fresh)
	return nil
}
