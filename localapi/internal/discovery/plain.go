package discovery

import (
	"encoding/json"
	"net/http"
	"slices"
)

// serveVersion answers /version.
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
