package inspect

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
)

// comparison is an object as the caches and as the server have it.
type comparison struct {
	Object Ref            `json:"object"`
	Caches []cacheAndLive `json:"caches"`
}

// cacheAndLive is one cache beside the server. A state without a version is not there.
type cacheAndLive struct {
	// Cache tells what is special about the cache, if several hold the resource.
	Cache         string `json:"cache"`
	CachedVersion string `json:"cachedVersion,omitempty"`
	LiveVersion   string `json:"liveVersion,omitempty"`
	// Problem is why the server does not show its state.
	Problem string `json:"problem,omitempty"`
	// Different counts the differing rows; Rows are both states as YAML, side by side.
	Different int   `json:"different"`
	Rows      []row `json:"rows"`
	// Cut: the states are larger than a page can show.
	Cut bool `json:"cut,omitempty"`
}

// compare answers with the object in each cache of its resource, beside the one that the server has now.
func (s *server) compare(w http.ResponseWriter, r *http.Request) {
	object, ok := s.object(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), whyTimeout)
	defer cancel()
	c := comparison{Object: object}
	for _, cache := range s.manager.Informers().Caches() {
		if cache.Resource() == object.Resource {
			c.Caches = append(c.Caches, s.compareCache(ctx, cache, object))
		}
	}
	if c.Caches == nil {
		http.Error(w, fmt.Sprintf("this process has no cache of %s", object.Resource), http.StatusNotFound)
		return
	}
	answer(w, c)
}

func (s *server) compareCache(ctx context.Context, cache informer.Cache, object Ref) cacheAndLive {
	c := cacheAndLive{Cache: selectionText(cache.Selection())}
	cached, inCache := cache.Get(object.Namespace, object.Name)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(cache.Selection().Kind)
	err := s.manager.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: object.Name}, live)
	switch {
	case err == nil:
		c.LiveVersion = live.GetResourceVersion()
	case !apierrors.IsNotFound(err):
		c.Problem = err.Error()
	}
	var before, after map[string]any
	if inCache {
		c.CachedVersion = cached.GetResourceVersion()
		if before = content(object.Resource, cached); before != nil {
			before["apiVersion"], before["kind"] = cache.Selection().Kind.ToAPIVersionAndKind()
		}
	}
	if c.LiveVersion != "" {
		after = content(object.Resource, live)
	}
	if _, ok := cached.(*metav1.PartialObjectMetadata); ok && after != nil {
		after = map[string]any{
			"apiVersion": after["apiVersion"], "kind": after["kind"], "metadata": after["metadata"],
		}
	}
	if inCache && after != nil {
		dropEmpty(before, after)
	}
	if object.Resource == secrets {
		hide(before, after)
	}
	left, cutLeft := yamlLines(before)
	right, cutRight := yamlLines(after)
	c.Rows, c.Cut = align(left, right), cutLeft || cutRight
	for _, r := range c.Rows {
		if !r.Same {
			c.Different++
		}
	}
	return c
}

// selectionText says which objects a cache holds; "" means all.
func selectionText(s *informer.InformerOptions) string {
	var parts []string
	for _, p := range []struct{ what, value string }{
		{"namespaces", strings.Join(s.Namespaces, ",")},
		{"labels", s.LabelSelector},
		{"fields", s.FieldSelector},
		{"shard", s.ShardSelector},
	} {
		if p.value != "" {
			parts = append(parts, p.what+" "+p.value)
		}
	}
	return strings.Join(parts, ", ")
}

// dropEmpty deletes the fields of cached that are empty and that live does not have. A Go type cannot tell an empty
// field from none, so the cache has them even if the server does not.
func dropEmpty(cached, live map[string]any) {
	for name, value := range cached {
		other, both := live[name]
		if !both && isEmpty(value) {
			delete(cached, name)
			continue
		}
		dropEmptyIn(value, other)
		if inner, ok := value.(map[string]any); ok && !both && len(inner) == 0 {
			delete(cached, name)
		}
	}
}

func dropEmptyIn(cached, live any) {
	switch c := cached.(type) {
	case map[string]any:
		l, _ := live.(map[string]any)
		dropEmpty(c, l)
	case []any:
		l, _ := live.([]any)
		for n := range c {
			if n < len(l) {
				dropEmptyIn(c[n], l[n])
			}
		}
	}
}

// isEmpty reports whether a value of JSON is what a Go field holds that was not set.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return reflect.ValueOf(v).IsZero()
}

// hide replaces the data of two states of a Secret by words, which tell whether a value is the same.
func hide(cached, live map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		c, l := cached[field], live[field]
		replace(cached, field, c, "(not shown)", l)
		replace(live, field, l, "(not shown; another value)", c)
	}
}

// replace replaces the values of a field, those that differ from the other state's by text.
func replace(fields map[string]any, field string, values any, text string, other any) {
	if _, ok := fields[field]; !ok {
		return
	}
	old, _ := values.(map[string]any)
	others, _ := other.(map[string]any)
	hidden := map[string]any{}
	for name, value := range old {
		hidden[name] = "(not shown)"
		if o, both := others[name]; both && !reflect.DeepEqual(value, o) {
			hidden[name] = text
		}
	}
	fields[field] = hidden
}
