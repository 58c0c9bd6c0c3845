package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/flyball-dev/flyball/inspect/page"
	"github.com/flyball-dev/flyball/internal/groupclient"
	"github.com/flyball-dev/flyball/manager"
)

// Handler serves what the Inspector knows of m:
//
//	GET /inspect/api/pipeline?limit=N                      a Pipeline, with at most N keys of each kind (default 20)
//	GET /inspect/api/objects?find=TEXT                     the Refs of objects with steps, at most 50
//	GET /inspect/api/object?resource=R&namespace=N&name=M  a Timeline; R may also be a kind, singular or short name
//	GET /inspect/api/compare?resource=R&namespace=N&name=M the object in the caches beside that on the server, as YAML
//	GET /inspect/api/events?resource=R&namespace=N&name=M  a stream of server-sent events; the object may be left out
//	GET /inspect/book/                                     Options.Book, if there is one
//	GET /inspect/                                          the page
//
// Answers are JSON. Errors are plain text. At most 16 streams are open at once. On a loopback address the Host header
// must be an IP address or localhost, and pages of other origins are refused. A manager serves it at its DebugAddr.
func (i *Inspector) Handler(m *manager.Manager) http.Handler {
	s := &server{Inspector: i, manager: m, readers: make(chan struct{}, mostReaders)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /inspect/api/pipeline", s.pipeline)
	mux.HandleFunc("GET /inspect/api/objects", s.objects)
	mux.HandleFunc("GET /inspect/api/object", s.timeline)
	if i.o.Tap != nil {
		mux.Handle(tapPath, i.o.Tap)
	}
	mux.HandleFunc("GET /inspect/api/compare", s.compare)
	mux.HandleFunc("GET /inspect/api/events", s.events)
	if i.o.Book != nil {
		mux.Handle("/inspect/book/", http.StripPrefix("/inspect/book", i.o.Book))
	}
	mux.HandleFunc("/inspect/api/", http.NotFound)
	mux.Handle("/inspect/", http.StripPrefix("/inspect", page.Handler()))
	return guard(mux)
}

type server struct {
	*Inspector
	manager *manager.Manager
	readers chan struct{} // has an element for each open stream

	mu      sync.Mutex
	latest  []byte    // the Pipeline that streams have last sent
	sampled time.Time // when it was made
}

func (s *server) pipeline(w http.ResponseWriter, r *http.Request) {
	limit := 20
	if text := r.URL.Query().Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			http.Error(w, "limit must be a number that is not negative", http.StatusBadRequest)
			return
		}
	}
	answer(w, s.view(s.manager, limit))
}

func (s *server) objects(w http.ResponseWriter, r *http.Request) {
	found := s.Find(r.URL.Query().Get("find"), 50)
	if found == nil {
		found = []Ref{}
	}
	answer(w, found)
}

func (s *server) timeline(w http.ResponseWriter, r *http.Request) {
	object, ok := s.object(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), whyTimeout)
	defer cancel()
	t := s.Timeline(object)
	t.Why = s.Why(ctx, s.manager, object)
	answer(w, t)
}

// object returns the object that a request is about. If there is none, it answers the request.
func (s *server) object(w http.ResponseWriter, r *http.Request) (object Ref, ok bool) {
	q := r.URL.Query()
	object = Ref{q.Get("resource"), q.Get("namespace"), q.Get("name")}
	if object.Resource == "" || object.Name == "" {
		http.Error(w, "resource and name are required, and the namespace of an object that has one",
			http.StatusBadRequest)
		return object, false
	}
	var err error
	if object.Resource, err = s.resource(object.Resource); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return object, false
	}
	return object, true
}

// resource returns the name under which a resource is recorded. text is that name, a kind, a singular, or a short name
// of the server's discovery, each with or without the group.
func (s *server) resource(text string) (string, error) {
	text = strings.ToLower(text)
	var known []string
	for _, c := range s.manager.Informers().Caches() {
		name, _, _ := strings.Cut(text, ".")
		of := c.Selection().Kind
		kind := strings.ToLower(of.Kind)
		if text == c.Resource() || name == kind && (name == text || text == kind+"."+of.Group) {
			return c.Resource(), nil
		}
		if plural, _, _ := strings.Cut(c.Resource(), "."); plural == text {
			return c.Resource(), nil
		}
		known = append(known, c.Resource())
	}
	named, mapper := schema.ParseGroupResource(text).WithVersion(""), s.manager.GetRESTMapper()
	found, err := mapper.ResourceFor(named)
	if err != nil { // text may be a short name, which the mapper does not know
		var c *discovery.DiscoveryClient
		if c, err = groupclient.Discovery(s.manager.GetConfig()); err == nil {
			found, err = restmapper.NewShortcutExpander(mapper, c, nil).ResourceFor(named)
		}
	}
	if err == nil {
		for _, c := range s.manager.Informers().Caches() {
			if c.IsOf(found.GroupResource()) { // It may have guessed another name.
				return c.Resource(), nil
			}
		}
		return found.GroupResource().String(), nil
	}
	slices.Sort(known)
	return "", fmt.Errorf("the server has no resource %q; this process watches %s", text,
		strings.Join(slices.Compact(known), ", "))
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // The reader has gone.
}
