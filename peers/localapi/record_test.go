package localapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// record has TestRecordTraffic write the scripts in testdata/traffic.
var record = flag.String("record", "",
	"record clients: a comma-separated list of go, and of commands as name=path (kubectl-1.37=/bin/kubectl, "+
		"python=/usr/bin/python3)")

// TestRecordTraffic records the requests of real clients to the real API server, each in a script that TestTraffic
// plays. It is not part of a test run: the scripts are recorded once for each version of a client.
func TestRecordTraffic(t *testing.T) {
	if *record == "" {
		t.Skip("records the clients named by -record, from the folder peers")
	}
	for _, name := range strings.Split(*record, ",") {
		name, path, _ := strings.Cut(name, "=")
		switch {
		case name == "go":
			for client, use := range goClients {
				recordClient(t, client,
					func(config *rest.Config, namespace string) error { return use(t.Context(), config, namespace) })
			}
		default:
			recordClient(t, name, func(config *rest.Config, namespace string) error {
				return runCommands(t, name, path, config.Host, namespace)
			})
		}
	}
}

// recordClient has a client work in a namespace of its own, and writes its script.
func recordClient(t *testing.T, name string, use func(config *rest.Config, namespace string) error) {
	t.Helper()
	namespace := "traffic-" + strings.ReplaceAll(name, ".", "-")
	head := fmt.Sprintf(trafficHead, namespace, strings.ReplaceAll(namespace, "-", "."))
	s, err := parseScript(namespace, head)
	if err != nil {
		t.Fatal(err)
	}
	real := realSide(t, s)
	for _, st := range append([]*step{createNamespace(namespace)}, s.steps...) {
		if a, err := perform(t.Context(), real, st); err != nil || a.code >= 300 {
			t.Fatalf("%s: %v %v", st, a.body, err)
		}
	}
	target, err := url.Parse(real.base)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{target: target, transport: real.client.Transport, ids: map[string]string{}, seen: map[string]bool{}}
	server := httptest.NewServer(r)
	defer server.Close()
	if err := use(&rest.Config{Host: server.URL, QPS: -1}, namespace); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	file := filepath.Join("testdata", "traffic", namespace+".txt")
	if err := os.WriteFile(file, []byte(head+strings.TrimSuffix(r.script.String(), "\n")), 0o644); err != nil {
		t.Error(err)
	}
}

// trafficHead begins each recorded script: it makes the custom resource that clients use. The values are the
// namespace and the API group.
const trafficHead = `# Recorded by TestRecordTraffic in the namespace %[1]s: not to be edited.

POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions -> 201
@codeonly
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: websites.%[2]s.example.com}
spec:
  group: %[2]s.example.com
  scope: Namespaced
  names: {plural: websites, singular: website, kind: Website, listKind: WebsiteList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {domain: {type: string}, replicas: {type: integer, default: 1}}}
          status: {type: object, properties: {replicas: {type: integer}, url: {type: string}}}

GET /apis/%[2]s.example.com/v1/namespaces/%[1]s/websites -> 200
@retry
@codeonly

`

// recorder is a proxy that writes a script of what passes it. UIDs, resource versions and continue tokens that the
// server gave become references to the answer that had them first.
//
// Concurrency: requests but for watches pass one by one, in the order of the script.
type recorder struct {
	target    *url.URL
	transport http.RoundTripper

	mu      sync.Mutex
	script  strings.Builder
	answers int
	ids     map[string]string // references by what they stand for, with a prefix that tells what it is
	seen    map[string]bool   // discovery documents that were asked for
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	query := req.URL.Query()
	watches := query.Get("watch") == "true" || query.Get("watch") == "1"
	if !watches {
		r.mu.Lock()
		defer r.mu.Unlock()
	}
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = r.target.Scheme, r.target.Host, "", ""
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.Header.Del("Accept-Encoding")
	resp, err := r.transport.RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	if watches {
		r.mu.Lock()
		r.write(req, body, resp.StatusCode, true)
		r.mu.Unlock()
		flushed := io.MultiWriter(w, flusher{w.(http.Flusher)})
		flushed.Write(nil)
		_, _ = io.Copy(flushed, resp.Body) // It ends when either end leaves.
		return
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return
	}
	r.write(req, body, resp.StatusCode, false)
	if tree, err := decode(resp.Header.Get("Content-Type"), answer); err == nil && !isDiscovery(req.URL.Path) {
		r.learn(fmt.Sprintf("r%d", r.answers), tree)
	}
	_, _ = w.Write(answer)
}

// flusher flushes instead of writing.
type flusher struct{ http.Flusher }

func (f flusher) Write(p []byte) (int, error) {
	f.Flush()
	return len(p), nil
}

// isDiscovery reports whether a path is not about objects.
func isDiscovery(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return parts[0] != "api" && parts[0] != "apis" || parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" &&
		len(parts) <= 3
}

// recordedHeaders are those that change what a server does.
var recordedHeaders = []string{"Accept", "Content-Type"}

// write appends a step.
func (r *recorder) write(req *http.Request, body []byte, code int, watches bool) {
	if strings.HasSuffix(req.URL.Path, "/customresourcedefinitions") {
		return // Those of other scripts are there, too.
	}
	discovery := isDiscovery(req.URL.Path)
	if discovery {
		key := req.URL.Path + req.Header.Get("Accept")
		if r.seen[key] || req.URL.Query().Has("hash") || strings.HasPrefix(req.URL.Path, "/apis/") {
			// Each is asked for often, openapi's by a hash that only this server knows, and groups that we do not have.
			return
		}
		r.seen[key] = true
	}
	r.answers++
	name := fmt.Sprintf("r%d", r.answers)
	method := req.Method
	if watches {
		method = "WATCH " + name
	}
	fmt.Fprintf(&r.script, "%s %s -> %d\n", method, r.reference(req.URL.Path+r.query(req.URL)), code)
	if watches {
		name = ""
	}
	for _, header := range recordedHeaders {
		for _, v := range req.Header.Values(header) {
			fmt.Fprintf(&r.script, "@%s: %s\n", header, v)
		}
	}
	if discovery || strings.HasSuffix(req.URL.Path, "/token") ||
		strings.HasSuffix(req.URL.Path, "/selfsubjectreviews") {
		r.script.WriteString("@codeonly\n")
	} else if name != "" {
		fmt.Fprintf(&r.script, "@as %s\n", name)
	}
	if len(body) > 0 {
		r.writeBody(req.Header.Get("Content-Type"), body)
	}
	r.script.WriteString("\n")
}

// query is the query of a step, in the order in which it was sent.
func (r *recorder) query(u *url.URL) string {
	var kept []string
	for _, pair := range strings.Split(u.RawQuery, "&") {
		if pair == "" || strings.HasPrefix(pair, "watch=") {
			continue
		}
		if plain, err := url.QueryUnescape(pair); err == nil {
			pair = plain
		}
		kept = append(kept, pair)
	}
	if len(kept) == 0 {
		return ""
	}
	return "?" + strings.Join(kept, "&")
}

func (r *recorder) writeBody(contentType string, body []byte) {
	directive := "@raw\n"
	if strings.HasPrefix(contentType, "application/vnd.kubernetes.protobuf") {
		directive = "@protobuf\n"
		if tree, err := decode(contentType, body); err == nil {
			body, _ = json.Marshal(tree)
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil {
		body = compact.Bytes()
	}
	lines := slices.DeleteFunc(strings.Split(string(body), "\n"),
		func(line string) bool { return strings.TrimSpace(line) == "" })
	r.script.WriteString(directive + r.reference(strings.Join(lines, "\n")) + "\n")
}

var (
	uid       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	version   = regexp.MustCompile(`(resourceVersion(?:\\?"\s*:\s*\\?"|=|: "?|","value":"))([0-9]+)`)
	continues = regexp.MustCompile(`(continue=)([^&]+)`)
)

// reference puts references in the place of what the server chose.
func (r *recorder) reference(text string) string {
	text = uid.ReplaceAllStringFunc(text, func(id string) string {
		if reference := r.ids["uid "+id]; reference != "" {
			return reference
		}
		return id
	})
	for _, part := range []struct {
		prefix string
		at     *regexp.Regexp
	}{{"version ", version}, {"continue ", continues}} {
		text = part.at.ReplaceAllStringFunc(text, func(found string) string {
			groups := part.at.FindStringSubmatch(found)
			if reference := r.ids[part.prefix+groups[2]]; reference != "" {
				return groups[1] + reference
			}
			return found
		})
	}
	return text
}

// learn notes what the server chose in an answer. path is where value stands.
func (r *recorder) learn(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			text, _ := inner.(string)
			prefix := map[string]string{"uid": "uid ", "resourceVersion": "version ", "continue": "continue "}[key]
			if prefix == "" || text == "" {
				if !strings.ContainsAny(key, "./") {
					r.learn(path+"."+key, inner)
				}
				continue
			}
			if r.ids[prefix+text] == "" {
				r.ids[prefix+text] = "${" + path + "." + key + "}"
			}
		}
	case []any:
		for i, inner := range v {
			r.learn(fmt.Sprint(path, ".", i), inner)
		}
	}
}

// runCommands runs the shell script of a client from testdata/traffic: kubectl.sh, or its name with .sh or .py.
func runCommands(t *testing.T, name, path, host, namespace string) error {
	kind, _, _ := strings.Cut(name, "-")
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u, namespace: %s}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}]}`, namespace, host)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		return err
	}
	script, err := filepath.Abs(filepath.Join("testdata", "traffic", kind+".sh"))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", script)
	cmd.Dir = dir
	group := strings.ReplaceAll(namespace, "-", ".") + ".example.com"
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "CLIENT="+path, "GROUP="+group, "NAMESPACE="+namespace,
		"HOME="+dir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	return err
}

// TestTraffic plays the requests of real clients that TestRecordTraffic has recorded.
func TestTraffic(t *testing.T) {
	known := newLedger(known)
	requests := 0
	for _, s := range readScripts(t, filepath.Join("testdata", "traffic")) {
		for _, st := range s.steps {
			if st.isRequest() {
				requests++
			}
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			newPair(t, s, known).play(t)
		})
	}
	if requests < 300 {
		t.Errorf("only %d requests", requests)
	}
}
