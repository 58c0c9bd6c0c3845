package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// live talks to the server.
type live struct {
	rest   rest.Interface
	scheme *runtime.Scheme
	mapper *mapper
	// protobuf says that objects go out and come back as protobuf where that is known of their kind. All others are
	// JSON.
	protobuf bool
}

func newLive(config *rest.Config, server rest.Interface, scheme *runtime.Scheme, m *mapper) *live {
	return &live{rest: server, scheme: scheme, mapper: m, protobuf: config.ContentType == protobufMedia}
}

// accept returns what to ask for as the answer that is read into obj.
func (l *live) accept(obj runtime.Object) string {
	if l.protobuf && hasProtobuf(obj) {
		return protobufMedia + "," + jsonMedia
	}
	return jsonMedia
}

// place is where a request goes.
type place struct {
	resource
	namespace, name, subresource string
}

func (l *live) placeOf(ctx context.Context, gvk schema.GroupVersionKind, key ObjectKey,
	subresource string,
) (place, error) {
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

// request begins a request. Answers are not retried by the client's library: it would send a create again that a
// failing server may have applied.
func (l *live) request(verb string, p place) *rest.Request {
	r := l.rest.Verb(verb).AbsPath(apiPath(p.GroupVersion())).NamespaceIfScoped(p.namespace,
		p.namespace != "").Resource(p.Resource).MaxRetries(0)
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

// answer sends a request and returns the body of a success and its content type. A server that says it is too busy
// (429) is asked again when it said to: nothing was applied. Whatever else fails is for the caller.
func answer(ctx context.Context, r *rest.Request, params url.Values) (contentType string, body []byte, err error) {
	for name, values := range params {
		for _, value := range values {
			r.Param(name, value)
		}
	}
	for attempt := 0; ; attempt++ {
		result := r.Do(ctx)
		err := result.Error()
		if err == nil {
			result.ContentType(&contentType)
			body, err = result.Raw()
			return contentType, body, err
		}
		wait, tooBusy := apierrors.SuggestsClientDelay(err)
		if !tooBusy || !apierrors.IsTooManyRequests(err) || attempt == maxThrottled {
			return "", nil, err
		}
		pause := time.NewTimer(time.Duration(wait) * time.Second)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return "", nil, err
		}
	}
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
	r := l.request("GET", p).SetHeader("Accept", l.accept(obj))
	if k.form == formMetadata {
		r.SetHeader("Accept", jsonMedia+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	}
	contentType, data, err := answer(ctx, r, nil)
	if err != nil {
		return err
	}
	got, err := k.decode(l.scheme, contentType, data)
	if err != nil {
		return err
	}
	set(obj, got)
	return nil
}

// list reads a list.
func (l *live) list(ctx context.Context, k kind, list ObjectList, o ListOptions) error {
	p, err := l.placeOf(ctx, k.gvk, ObjectKey{Namespace: o.Namespace}, "")
	if err != nil {
		return err
	}
	r := l.collection("GET", p, o).SetHeader("Accept", l.accept(list))
	if k.form == formMetadata {
		r.SetHeader("Accept", jsonMedia+";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	}
	contentType, data, err := answer(ctx, r, nil)
	if err != nil {
		return err
	}
	return decodeList(contentType, data, k, list)
}

// decodeList reads a list into list, of which nothing stays.
func decodeList(contentType string, data []byte, k kind, list ObjectList) error {
	fresh := reflect.New(reflect.TypeOf(list).Elem()).Interface().(ObjectList)
	if err := decodeInto(contentType, data, fresh); err != nil {
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
