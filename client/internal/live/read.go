package live

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer"
)

// List is a list of objects.
type List interface {
	metav1.ListInterface
	runtime.Object
}

// Accept returns what to ask for as the answer that is read into obj.
func (s *Server) Accept(obj runtime.Object) string { return kinds.Accept(obj, s.protobuf) }

// Encode returns obj as what is sent, and its content type.
func (s *Server) Encode(obj runtime.Object, k kinds.Kind) (data []byte, media string, err error) {
	return kinds.Encode(obj, k.GVK, s.protobuf)
}

// get asks for what is at a place, in a content type. The place is as in [Server.PlaceOf].
func (s *Server) get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName,
	subresource, accept string, params url.Values,
) (contentType string, data []byte, err error) {
	p, err := s.PlaceOf(ctx, gvk, key, subresource)
	if err != nil {
		return "", nil, err
	}
	return s.Send(ctx, Request{Verb: "GET", Place: p, Params: params, Accept: accept})
}

// Get reads the object of that key, which has a name.
func (s *Server) Get(ctx context.Context, k kinds.Kind, key types.NamespacedName, obj informer.Object) error {
	accept := s.Accept(obj)
	if k.Form == kinds.Metadata {
		accept = kinds.JSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	}
	contentType, data, err := s.get(ctx, k.GVK, key, "", accept, nil)
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

// List reads the objects of a kind in a namespace, "" being all, that params select.
func (s *Server) List(ctx context.Context, k kinds.Kind, namespace string, params url.Values, list List) error {
	accept := s.Accept(list)
	if k.Form == kinds.Metadata {
		accept = kinds.JSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	}
	contentType, data, err := s.get(ctx, k.GVK, types.NamespacedName{Namespace: namespace}, "", accept, params)
	if err != nil {
		return err
	}
	fresh := reflect.New(reflect.TypeOf(list).Elem()).Interface().(List) // Nothing stays of what list has.
	if err := kinds.Decode(contentType, data, fresh); err != nil {
		return err
	}
	answered := fresh.GetObjectKind().GroupVersionKind()
	if strings.HasPrefix(contentType, kinds.Protobuf) && answered != k.List() { // Lists in JSON may have other names.
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

// GetSubresource reads a subresource of obj into sub, its own object.
func (s *Server) GetSubresource(ctx context.Context, obj informer.Object, name string, sub informer.Object) error {
	k, err := kinds.Of(s.Scheme, obj)
	if err != nil {
		return fmt.Errorf("get %s of %T: %w", name, obj, err)
	}
	reply, err := s.ReplyTo(sub)
	if err != nil {
		return fmt.Errorf("get %s of %T: %w", name, obj, err)
	}
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	contentType, data, err := s.get(ctx, k.GVK, key, name, s.Accept(sub), nil)
	if err != nil {
		return err
	}
	return reply.Give(contentType, data)
}
