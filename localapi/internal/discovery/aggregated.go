package discovery

import (
	"crypto/sha512"
	"encoding/hex"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// serveAggregated answers a discovery of everything at once, if the client asks for that form, and reports whether it
// did.
//
// Source: k8s.io/apiserver pkg/endpoints/discovery/aggregated.
func (h *Handler) serveAggregated(w http.ResponseWriter, r *http.Request, include func(schema.GroupVersion) bool) bool {
	if !wantsAggregated(r.Header.Get("Accept")) {
		return false
	}
	list := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{
			Kind:       "APIGroupDiscoveryList",
			APIVersion: apidiscoveryv2.SchemeGroupVersion.String(),
		},
	}
	for _, gv := range h.groupVersions() {
		if !include(gv) {
			continue
		}
		i := slices.IndexFunc(list.Items, func(g apidiscoveryv2.APIGroupDiscovery) bool { return g.Name == gv.Group })
		if i < 0 {
			i = len(list.Items)
			list.Items = append(list.Items,
				apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: gv.Group}})
		}
		list.Items[i].Versions = append(list.Items[i].Versions, h.versionDiscovery(gv))
	}
	b, err := h.codec.Encode(list, codec.JSON, false)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return true
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON+";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	serveUnlessKnown(w, r, b)
	return true
}

// serveUnlessKnown sends a document, or only status 304 if the client has it already.
//
// Source: k8s.io/apiserver pkg/endpoints/discovery/aggregated/etag.go.
func serveUnlessKnown(w http.ResponseWriter, r *http.Request, b []byte) {
	sum := sha512.Sum512(b)
	etag := strconv.Quote(strings.ToUpper(hex.EncodeToString(sum[:])))
	w.Header().Set("ETag", etag)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(b)
}

// wantsAggregated looks for the aggregated form, in JSON, among the alternatives of an Accept header. Clients that
// know it list it first.
func wantsAggregated(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err == nil && mediaType == runtime.ContentTypeJSON && params["as"] == "APIGroupDiscoveryList" &&
			params["g"] == apidiscoveryv2.GroupName && params["v"] == "v2" {
			return true
		}
	}
	return false
}

func (h *Handler) versionDiscovery(gv schema.GroupVersion) apidiscoveryv2.APIVersionDiscovery {
	v := apidiscoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	for _, d := range h.definitions {
		if d.GroupVersion == gv {
			v.Resources = append(v.Resources, resourceDiscovery(d))
		}
	}
	return v
}

func resourceDiscovery(d *resource.Definition) apidiscoveryv2.APIResourceDiscovery {
	scope := apidiscoveryv2.ScopeCluster
	if d.Namespaced {
		scope = apidiscoveryv2.ScopeNamespace
	}
	custom := isCustom(d)
	kindOf := func(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
		if gvk.GroupVersion() == d.GroupVersion && !custom { // the default is stated for custom resources only
			return &metav1.GroupVersionKind{Kind: gvk.Kind}
		}
		return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	}
	r := apidiscoveryv2.APIResourceDiscovery{
		Resource: d.Plural, ResponseKind: kindOf(d.GroupVersionKind()), Scope: scope, SingularResource: d.Singular,
		Verbs: verbsOf(d), ShortNames: d.ShortNames, Categories: d.Categories,
	}
	if d.HasStatus {
		r.Subresources = append(r.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: "status", ResponseKind: kindOf(d.GroupVersionKind()), Verbs: statusVerbs,
		})
	}
	for name, sub := range d.Subresources {
		r.Subresources = append(r.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: name, ResponseKind: kindOf(sub.Kind), Verbs: sub.Verbs,
		})
	}
	if !custom {
		slices.SortFunc(r.Subresources, func(a, b apidiscoveryv2.APISubresourceDiscovery) int {
			return strings.Compare(a.Subresource, b.Subresource)
		})
	}
	return r
}
