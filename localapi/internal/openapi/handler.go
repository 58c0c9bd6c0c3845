package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"sync"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/resource"
)

// Handler serves /openapi/v3 and the documents below it. They are built when somebody asks for one.
type Handler struct {
	documents func() map[string]served
}

// served is a document in JSON, and its hash.
type served struct {
	body []byte
	hash string
}

// New returns the handler for a set of types.
func New(definitions []*resource.Definition) *Handler {
	return &Handler{documents: sync.OnceValue(func() map[string]served { return build(definitions) })}
}

func build(definitions []*resource.Definition) map[string]served {
	all := map[string]served{}
	for _, d := range definitions {
		path := pathOf(d.GroupVersion)
		if _, done := all[path]; done {
			continue
		}
		body, err := json.Marshal(newDocument(d.GroupVersion, definitions))
		if err != nil {
			panic(err) // plain structs of strings
		}
		sum := sha256.Sum256(body)
		all[path] = served{body: body, hash: hex.EncodeToString(sum[:])}
	}
	return all
}

// pathOf is where a group version's resources are served, without the first slash.
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
	for path, doc := range h.documents() {
		paths[path] = link{URL: "/openapi/v3/" + path + "?hash=" + doc.hash}
	}
	body, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// ServeDocument answers /openapi/v3/{path} with one document.
func (h *Handler) ServeDocument(w http.ResponseWriter, r *http.Request) {
	doc, ok := h.documents()[r.PathValue("path")]
	if !ok {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Etag", `"`+doc.hash+`"`)
	_, _ = w.Write(doc.body)
}
