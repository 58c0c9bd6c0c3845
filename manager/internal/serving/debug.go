package serving

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
)

// Debug returns a handler that serves profiles below /debug/pprof/, and configuration as JSON at /configz.
func Debug(configuration any) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /configz", func(w http.ResponseWriter, _ *http.Request) {
		text, err := json.MarshalIndent(configuration, "", "  ")
		if err != nil {
			Answer(w, http.StatusInternalServerError, "the configuration cannot be shown: "+err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n'))
	})
	return mux
}
