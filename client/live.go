package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"
)

const jsonMedia = "application/json"

// live talks to the server: objects go out and come back as JSON.
type live struct {
	rest   rest.Interface
	scheme *runtime.Scheme
	mapper *mapper
}

// place is where a request goes.
type place struct {
	resource
	namespace, name, subresource string
}

func (l *live) placeOf(ctx context.Context, gvk schema.GroupVersionKind, key ObjectKey, subresource string) (place, error) {
	r, err := l.mapper.resourceOf(ctx, gvk)
	if err != nil {
		return place{}, err
	}
	p := place{resource: r, namespace: key.Namespace, name: key.Name, subresource: subresource}
	if !r.namespaced {
		p.namespace = ""
	} else if key.Namespace == "" && key.Name != "" {
		return place{}, fmt.Errorf("%s %s: %s live in namespaces, and none is given", gvk.Kind, key.Name, r.Resource)
	}
	return p, nil
}

// request begins a request. Answers are not retried by the client's library: it would send a create again that a failing
// server may have applied.
func (l *live) request(verb string, p place) *rest.Request {
	r := l.rest.Verb(verb).AbsPath(apiPath(p.GroupVersion())).NamespaceIfScoped(p.namespace, p.namespace != "").Resource(p.Resource).MaxRetries(0)
	if p.name != "" {
		r.Name(p.name)
	}
	if p.subresource != "" {
		r.SubResource(p.subresource)
	}
	return r
}

// collection begins a request for many objects.
func (l *live) collection(verb string, p place, o ListOptions) *rest.Request {
	p.name, p.subresource = "", ""
	r := l.request(verb, p)
	if o.Labels != nil && !o.Labels.Empty() {
		r.Param("labelSelector", o.Labels.String())
	}
	if len(o.Fields) > 0 {
		r.Param("fieldSelector", o.Fields.AsSelector().String())
	}
	if o.Limit > 0 {
		r.Param("limit", strconv.FormatInt(o.Limit, 10))
	}
	if o.Continue != "" {
		r.Param("continue", o.Continue)
	}
	return r
}

// maxThrottled is how often a request is sent again that the server was too busy for.
const maxThrottled = 10

// answer sends a request and returns the body of a success. A server that says it is too busy (429) is asked again when it
// said to: nothing was applied. Whatever else fails is for the caller.
func answer(ctx context.Context, r *rest.Request, params url.Values) ([]byte, error) {
	for name, values := range params {
		for _, value := range values {
			r.Param(name, value)
		}
	}
	for attempt := 0; ; attempt++ {
		result := r.Do(ctx)
		err := result.Error()
		if err == nil {
			return result.Raw()
		}
		wait, tooBusy := apierrors.SuggestsClientDelay(err)
		if !tooBusy || !apierrors.IsTooManyRequests(err) || attempt == maxThrottled {
			return nil, err
		}
		pause := time.NewTimer(time.Duration(wait) * time.Second)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, err
		}
	}
}

// encode makes JSON of obj, which says its kind even where the Go value does not.
func encode(obj runtime.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", gvk.Kind, err)
	}
	if !obj.GetObjectKind().GroupVersionKind().Empty() || len(data) < 2 || data[0] != '{' {
		return data, nil
	}
	head, err := json.Marshal(metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind})
	if err != nil {
		return nil, err
	}
	if string(data) == "{}" {
		return head, nil
	}
	return append(append(head[:len(head)-1], ','), data[1:]...), nil
}

// decode reads JSON into a new Go value; integers stay integers.
func decode(data []byte, into any) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, into); err != nil {
		return fmt.Errorf("decode the server's answer: %w", err)
	}
	return nil
}

// decodeObject reads an object into obj, of which nothing stays.
func (l *live) decodeObject(data []byte, k kind, obj Object) error {
	fresh, err := k.make(l.scheme)
	if err != nil {
		return err
	}
	if err := decode(data, fresh); err != nil {
		return err
	}
	fresh.GetObjectKind().SetGroupVersionKind(k.gvk)
	set(obj, fresh)
	return nil
}

// get reads one object.
func (l *live) get(ctx context.Context, k kind, key ObjectKey, obj Object) error {
	p, err := l.placeOf(ctx, k.gvk, key, "")
	if err != nil {
		return err
	}
	if key.Name == "" {
		return errors.New("get: the key has no name")
	}
	r := l.request("GET", p)
	if k.form == formMetadata {
		r.SetHeader("Accept", jsonMedia+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	}
	data, err := answer(ctx, r, nil)
	if err != nil {
		return err
	}
	return l.decodeObject(data, k, obj)
}

// list reads a list.
func (l *live) list(ctx context.Context, k kind, list ObjectList, o ListOptions) error {
	p, err := l.placeOf(ctx, k.gvk, ObjectKey{Namespace: o.Namespace}, "")
	if err != nil {
		return err
	}
	r := l.collection("GET", p, o)
	if k.form == formMetadata {
		r.SetHeader("Accept", jsonMedia+";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	}
	data, err := answer(ctx, r, nil)
	if err != nil {
		return err
	}
	return decodeList(data, k, list)
}

// version returns the resource version of the newest list.
func (l *live) version(ctx context.Context, p place) (string, error) {
	data, err := answer(ctx, l.collection("GET", p, ListOptions{Limit: 1}), nil)
	if err != nil {
		return "", err
	}
	var list metav1.PartialObjectMetadataList
	if err := decode(data, &list); err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
}

// decodeList reads a list into list, of which nothing stays.
func decodeList(data []byte, k kind, list ObjectList) error {
	fresh := reflect.New(reflect.TypeOf(list).Elem()).Interface().(ObjectList)
	if err := decode(data, fresh); err != nil {
		return err
	}
	fresh.GetObjectKind().SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	err := meta.EachListItem(fresh, func(item runtime.Object) error {
		item.GetObjectKind().SetGroupVersionKind(k.gvk)
		return nil
	})
	if err != nil {
		return fmt.Errorf("decode the server's answer: %w", err)
	}
	set(list, fresh)
	return nil
}
