package openapi

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// Handler serves /openapi/v3, the documents below it, and /openapi/v2. A document is built on first request.
type Handler struct {
	// fixed are the documents of the types that are always served, custom those of the others.
	fixed, custom func() *documents

	v2 func() encodedV2
}

// documents holds documents of version 3, as values and encoded, by path.
type documents struct {
	all    []*document
	byPath map[string]served
}

// served is an encoded document, and its hash.
type served struct {
	body []byte
	hash string
}

func newServed(body []byte) served {
	sum := sha512.Sum512(body)
	return served{body: body, hash: strings.ToUpper(hex.EncodeToString(sum[:]))}
}

// New returns the handler for a set of types.
func New(definitions []*resource.Definition) *Handler {
	fixed := sync.OnceValue(func() *documents { return build(definitions) })
	return newHandler(fixed, func() *documents { return &documents{} })
}

// With returns a handler for h's types and others, which have group versions of their own. It reuses the documents that
// h has built.
func (h *Handler) With(definitions []*resource.Definition) *Handler {
	return newHandler(h.fixed, sync.OnceValue(func() *documents { return build(definitions) }))
}

func newHandler(fixed, custom func() *documents) *Handler {
	return &Handler{fixed: fixed, custom: custom, v2: sync.OnceValue(func() encodedV2 {
		return encodeV2(slices.Concat(fixed().all, custom().all))
	})}
}

func build(definitions []*resource.Definition) *documents {
	all := &documents{byPath: map[string]served{}}
	for _, d := range definitions {
		path := pathOf(d.GroupVersion)
		if _, done := all.byPath[path]; done {
			continue
		}
		doc := newDocument(d.GroupVersion, definitions)
		body, err := json.Marshal(doc)
		if err != nil {
			continue // a schema that is not JSON cannot be published
		}
		all.all = append(all.all, doc)
		all.byPath[path] = newServed(body)
	}
	return all
}

// pathOf returns the path of a group version's resources, without the leading slash.
func pathOf(gv runtimeschema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// ServeRoot answers /openapi/v3 with the list of documents.
func (h *Handler) ServeRoot(w http.ResponseWriter, _ *http.Request) {
	type link struct {
		URL string `json:"serverRelativeURL"`
	}
	paths := map[string]link{}
	for _, documents := range []*documents{h.fixed(), h.custom()} {
		for path, doc := range documents.byPath {
			paths[path] = link{URL: "/openapi/v3/" + path + "?hash=" + doc.hash}
		}
	}
	body, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// ServeDocument answers /openapi/v3/{path} with one document. A request with an outdated hash is redirected to the
// current one, so that what a client has cached under a hash never changes.
//
// Source: k8s.io/kube-openapi pkg/handler3/handler.go HandleGroupVersion.
func (h *Handler) ServeDocument(w http.ResponseWriter, r *http.Request) {
	path := r.PathValue("path")
	doc, ok := h.fixed().byPath[path]
	if !ok {
		doc, ok = h.custom().byPath[path]
	}
	if !ok {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	if asked := r.URL.Query().Get("hash"); asked != "" {
		if asked != doc.hash {
			http.Redirect(w, r, "/openapi/v3/"+path+"?hash="+doc.hash, http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	doc.serve(w, r, "application/json")
}

// serve sends a document, unless the client has it already.
func (s served) serve(w http.ResponseWriter, r *http.Request, contentType string) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Etag", strconv.Quote(s.hash))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.body))
}
