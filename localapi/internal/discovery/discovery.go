package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/openapi"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// Handler serves the paths outside resources.
type Handler struct {
	definitions []*resource.Definition // the fixed ones first
	fixed       int                    // how many of them are fixed
	codec       *codec.Codec
	documents   *openapi.Handler
	mux         *http.ServeMux
}

// New returns the handler for a set of types.
func New(definitions []*resource.Definition, c *codec.Codec) *Handler {
	return newHandler(&Handler{
		definitions: definitions, fixed: len(definitions), codec: c, documents: openapi.New(definitions),
	})
}

// With returns a handler for h's types and others, which come and go. Their groups follow h's, sorted by name. The
// versions of a group are in the order that clients prefer.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/customresource_discovery_controller.go.
func (h *Handler) With(others []*resource.Definition) *Handler {
	others = slices.Clone(others)
	slices.SortStableFunc(others, func(a, b *resource.Definition) int {
		return cmp.Or(
			strings.Compare(a.GroupVersion.Group, b.GroupVersion.Group),
			apiversion.CompareKubeAwareVersionStrings(b.GroupVersion.Version, a.GroupVersion.Version),
			strings.Compare(a.Plural, b.Plural),
		)
	})
	return newHandler(&Handler{
		definitions: slices.Concat(h.definitions[:h.fixed], others), fixed: h.fixed, codec: h.codec,
		documents: h.documents.With(others),
	})
}

func newHandler(h *Handler) *Handler {
	h.mux = http.NewServeMux()
	h.mux.HandleFunc("GET /api", h.serveLegacy)
	h.mux.HandleFunc("GET /apis", h.serveGroups)
	h.mux.HandleFunc("GET /apis/{group}", h.serveGroup)
	h.mux.HandleFunc("GET /api/{version}", h.serveResources)
	h.mux.HandleFunc("GET /apis/{group}/{version}", h.serveResources)
	h.mux.HandleFunc("GET /version", h.serveVersion)
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		h.mux.HandleFunc("GET "+path, serveHealth)
	}
	h.mux.HandleFunc("GET /openapi/v2", h.documents.ServeV2)
	h.mux.HandleFunc("GET /openapi/v3", h.documents.ServeRoot)
	h.mux.HandleFunc("GET /openapi/v3/{path...}", h.documents.ServeDocument)
	h.mux.HandleFunc("GET /{$}", h.serveRoot)
	return h
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path := r.URL.Path; strings.HasSuffix(path, "/") && takesSlash(path) {
		r = r.Clone(r.Context())
		r.URL.Path = strings.TrimRight(path, "/")
	}
	if _, pattern := h.mux.Handler(r); pattern == "" {
		notFound(w)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// takesSlash reports whether a path may end with a slash: one below the API's roots, or that of the version. Health and
// OpenAPI are served at their exact paths.
func takesSlash(path string) bool {
	return strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/apis/") || path == "/version/"
}

func notFound(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

// noVersion answers requests for a version that a group does not have. For groups with Go types, the answer is a
// Status.
func (h *Handler) noVersion(w http.ResponseWriter, r *http.Request, group string) {
	fixed := func(d *resource.Definition) bool { return d.GroupVersion.Group == group && !isCustom(d) }
	if !slices.ContainsFunc(h.definitions, fixed) {
		notFound(w)
		return
	}
	status := codec.Status(
		apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "404: Not Found", 0,
			false),
	)
	h.respondCode(w, r, http.StatusNotFound, status)
}

// respond sends obj, whose kind must be set, in the form that the client asks for.
func (h *Handler) respond(w http.ResponseWriter, r *http.Request, obj runtime.Object) {
	h.respondCode(w, r, http.StatusOK, obj)
}

func (h *Handler) respondCode(w http.ResponseWriter, r *http.Request, code int, obj runtime.Object) {
	out, err := codec.Negotiate(r, false, true, nil)
	if err != nil {
		out = codec.Output{}
	}
	b, err := h.codec.Encode(obj, out.Format, out.Pretty)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", out.Format.ContentType())
	w.WriteHeader(code)
	_, _ = w.Write(b)
}

// groupVersions returns the served versions, in the order of the definitions.
func (h *Handler) groupVersions() []schema.GroupVersion {
	var all []schema.GroupVersion
	for _, d := range h.definitions {
		if !slices.Contains(all, d.GroupVersion) {
			all = append(all, d.GroupVersion)
		}
	}
	return all
}

func (h *Handler) serveLegacy(w http.ResponseWriter, r *http.Request) {
	if h.serveAggregated(w, r, func(gv schema.GroupVersion) bool { return gv.Group == "" }) {
		return
	}
	h.respond(w, r, &metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"},
		Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
			{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host},
		},
	})
}

func (h *Handler) serveGroups(w http.ResponseWriter, r *http.Request) {
	if h.serveAggregated(w, r, func(gv schema.GroupVersion) bool { return gv.Group != "" }) {
		return
	}
	list := &metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{},
	}
	for _, gv := range h.groupVersions() {
		named := func(g metav1.APIGroup) bool { return g.Name == gv.Group }
		if gv.Group != "" && !slices.ContainsFunc(list.Groups, named) {
			list.Groups = append(list.Groups, h.group(gv.Group))
		}
	}
	h.respond(w, r, list)
}

func (h *Handler) serveGroup(w http.ResponseWriter, r *http.Request) {
	group := h.group(r.PathValue("group"))
	if len(group.Versions) == 0 {
		notFound(w)
		return
	}
	group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	h.respond(w, r, &group)
}

func (h *Handler) group(name string) metav1.APIGroup {
	group := metav1.APIGroup{Name: name}
	for _, gv := range h.groupVersions() {
		if gv.Group == name {
			group.Versions = append(group.Versions,
				metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
		}
	}
	if len(group.Versions) > 0 {
		group.PreferredVersion = group.Versions[0]
	}
	return group
}

func (h *Handler) serveResources(w http.ResponseWriter, r *http.Request) {
	gv := schema.GroupVersion{Group: r.PathValue("group"), Version: r.PathValue("version")}
	list := &metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(),
	}
	for _, d := range h.definitions {
		if d.GroupVersion == gv {
			list.APIResources = append(list.APIResources, resourcesOf(d)...)
		}
	}
	if len(list.APIResources) == 0 {
		h.noVersion(w, r, gv.Group)
		return
	}
	h.respond(w, r, list)
}

// verbs are the verbs of every resource with a Go type, and statusVerbs those of every status. Custom resources list
// theirs in another order, and lack those that change objects while their definition is being deleted.
var (
	customVerbs      = metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	terminatingVerbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"}

	verbs       = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	statusVerbs = metav1.Verbs{"get", "patch", "update"}
)

// isCustom reports whether a definition of custom resources made the type. APIServices have no Go type either.
func isCustom(d *resource.Definition) bool { return d.StorageVersion != "" }

func verbsOf(d *resource.Definition) metav1.Verbs {
	switch {
	case d.CreateOnly():
		return metav1.Verbs{"create"}
	case d.Terminating:
		return terminatingVerbs
	case isCustom(d):
		return customVerbs
	case d.NoDeleteCollection:
		return slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return v == "deletecollection" })
	}
	return verbs
}

// storageVersionHash lets clients detect that a type is stored in another form than before.
//
// Source: k8s.io/apiserver pkg/endpoints/discovery/storageversionhash.go.
func storageVersionHash(d *resource.Definition) string {
	if d.CreateOnly() {
		return "" // nothing is stored
	}
	gv := d.GroupVersion
	if d.StorageVersion != "" {
		gv.Version = d.StorageVersion
	}
	if d.Family != nil {
		gv = d.Family.Stored().Kind.GroupVersion()
	}
	sum := sha256.Sum256([]byte(gv.Group + "/" + gv.Version + "/" + d.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// resourcesOf returns a type's resource and its subresources. They are sorted, except for custom resources.
func resourcesOf(d *resource.Definition) []metav1.APIResource {
	all := []metav1.APIResource{{
		Name: d.Plural, SingularName: d.Singular, Namespaced: d.Namespaced, Kind: d.Kind, Verbs: verbsOf(d),
		ShortNames: d.ShortNames, Categories: d.Categories, StorageVersionHash: storageVersionHash(d),
	}}
	if d.HasStatus {
		all = append(all,
			metav1.APIResource{Name: d.Plural + "/status", Namespaced: d.Namespaced, Kind: d.Kind, Verbs: statusVerbs})
	}
	for name, sub := range d.Subresources {
		resource := metav1.APIResource{
			Name: d.Plural + "/" + name, Namespaced: d.Namespaced, Kind: sub.Kind.Kind, Verbs: sub.Verbs,
		}
		if sub.Kind.GroupVersion() != d.GroupVersion {
			resource.Group, resource.Version = sub.Kind.Group, sub.Kind.Version
		}
		all = append(all, resource)
	}
	if !isCustom(d) {
		slices.SortFunc(all, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	}
	return all
}

// kubernetesVersion is the version of the API that the server implements: that of the libraries it is built with.
var kubernetesVersion = apiversion.Info{
	Major: "1", Minor: "37", GitVersion: "v1.37.2+flyball", GitTreeState: "clean", Platform: "flyball/localapi",
}

// serveHealth answers that the server is well, with ?verbose in the form of a list of checks.
//
// Source: k8s.io/apiserver v0.37.2 pkg/server/healthz/healthz.go handleRootHealth.
func serveHealth(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := "ok"
	if r.URL.Query().Has("verbose") {
		text = "[+]ping ok\n" + strings.Trim(r.URL.Path, "/") + " check passed\n"
	}
	_, _ = io.WriteString(w, text)
}

func (h *Handler) serveVersion(w http.ResponseWriter, _ *http.Request) {
	serveJSON(w, kubernetesVersion)
}

// serveRoot answers / with the list of paths.
func (h *Handler) serveRoot(w http.ResponseWriter, _ *http.Request) {
	paths := []string{"/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"}
	for _, gv := range h.groupVersions() {
		if gv.Group == "" {
			paths = append(paths, "/api/"+gv.Version)
			continue
		}
		paths = append(paths, "/apis/"+gv.Group, "/apis/"+gv.Group+"/"+gv.Version)
	}
	slices.Sort(paths)
	serveJSON(w, map[string][]string{"paths": slices.Compact(paths)})
}

func serveJSON(w http.ResponseWriter, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
}
