package localapi

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hookServer answers the calls of both API servers. The path of a webhook says what it does, in words with a plus
// between them. The arguments of a word follow it after colons.
//
//	label:KEY:VALUE+warn:TEXT     adds a label by a patch, and a warning
//	echo                          answers with what it was asked: a mutating webhook in the annotation echo, a
//	                              validating one in the message of its refusal
//
// Everything else is in [said.apply].
func hookServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(serveHook))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handlers that panic
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// giveHooks lets a script name the server: ${hook.url} and ${hook.ca}.
func giveHooks(p *pair, server *httptest.Server) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, s := range []*side{p.real, p.ours} {
		s.kept["hook"] = map[string]any{"url": server.URL, "ca": base64.StdEncoding.EncodeToString(ca)}
	}
}

// said is the answer that a hook makes.
type said struct {
	request  map[string]any
	mutates  bool
	patch    []any
	review   map[string]any
	response map[string]any
}

func serveHook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var review map[string]any
	if err == nil {
		err = json.Unmarshal(body, &review)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	how, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	words := strings.Split(what, "+")
	if how == "convert" {
		serveConversion(w, r, review, words)
		return
	}
	request, _ := review["request"].(map[string]any)
	s := &said{request: request, mutates: how == "m", review: review}
	s.response = map[string]any{"uid": request["uid"], "allowed": true}
	if isProbe(request) && !strings.HasPrefix(words[0], "probe:") {
		words = nil
	}
	for _, word := range words {
		name, _, _ := strings.Cut(word, ":")
		parts := map[string]int{"patch": 2, "set": 3, "test": 3} // the last argument may have colons
		arguments := strings.SplitN(word, ":", cmp.Or(parts[name], -1))
		if answered := misbehave(w, r, arguments); answered {
			return
		}
		s.apply(arguments[0], append(arguments[1:], "", "", ""))
	}
	if len(s.patch) > 0 {
		s.setPatch(encode(s.patch))
	}
	answer := map[string]any{"kind": review["kind"], "apiVersion": review["apiVersion"], "response": s.response}
	if s.review == nil {
		answer = map[string]any{}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, encode(answer))
}

// isProbe reports whether a request is one of those by which a side finds out which webhooks are called.
func isProbe(request map[string]any) bool {
	object, _ := request["object"].(map[string]any)
	m, _ := object["metadata"].(map[string]any)
	labels, _ := m["labels"].(map[string]any)
	return labels["probe"] != nil
}

// misbehave answers as no webhook should, if the word says so.
func misbehave(w http.ResponseWriter, r *http.Request, word []string) bool {
	switch word[0] {
	case "hang":
		<-r.Context().Done()
	case "panic":
		panic(http.ErrAbortHandler)
	case "text":
		_, _ = io.WriteString(w, "this is no JSON")
	case "nothing":
		w.WriteHeader(http.StatusOK)
	case "array":
		_, _ = io.WriteString(w, "[]")
	case "half":
		_, _ = io.WriteString(w, `{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "resp`)
	case "object":
		_, _ = io.WriteString(w, `{"some": "thing"}`)
	case "otherkind":
		_, _ = io.WriteString(w, `{"kind": "Pod", "apiVersion": "v1"}`)
	case "status":
		code, _ := strconv.Atoi(word[1])
		http.Error(w, "said "+word[1], code)
	case "failure":
		code, _ := strconv.Atoi(word[1])
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "a status", `+
			`"reason": "Conflict", "code": %d}`, code)
	case "redirect":
		http.Redirect(w, r, "/m/allow", http.StatusFound)
	default:
		return false
	}
	return true
}

func (s *said) setPatch(patch string) {
	s.response["patch"] = base64.StdEncoding.EncodeToString([]byte(patch))
	s.response["patchType"] = "JSONPatch"
}

// apply does what a word says.
func (s *said) apply(word string, args []string) {
	object, _ := s.request["object"].(map[string]any)
	m, _ := object["metadata"].(map[string]any)
	switch word {
	case "allow":
	case "deny":
		s.deny(args)
	case "probe":
		s.response["allowed"], s.response["status"] = false, map[string]any{"code": 418, "message": args[0]}
	case "warn":
		warnings, _ := s.response["warnings"].([]any)
		s.response["warnings"] = append(warnings, args[0])
	case "note":
		s.response["auditAnnotations"] = map[string]any{args[0]: args[1]}
	case "label":
		if m["labels"] == nil {
			m["labels"] = map[string]any{}
			s.op("add", "/metadata/labels", map[string]any{})
		}
		s.op("add", "/metadata/labels/"+args[0], args[1])
	case "count": // adds one for each call
		labels, _ := m["labels"].(map[string]any)
		n, _ := labels["count"].(string)
		was, _ := strconv.Atoi(n)
		s.apply("label", []string{"count", strconv.Itoa(was + 1)})
	case "set", "test", "drop": // a field, with dots, to a value in JSON
		var value any = args[1]
		_ = json.Unmarshal([]byte(args[1]), &value)
		op := map[string]string{"set": "add", "test": "test", "drop": "remove"}[word]
		s.op(op, "/"+strings.ReplaceAll(args[0], ".", "/"), value)
	case "finalizer":
		s.op("add", "/metadata/finalizers", []any{args[0]})
	case "patch":
		s.setPatch(args[0])
	case "untyped":
		s.setPatch("[]")
		delete(s.response, "patchType")
	case "typed":
		s.response["patchType"] = args[0]
	case "uid":
		s.response["uid"] = args[0]
	case "version":
		s.review["apiVersion"] = "admission.k8s.io/" + args[0]
	case "kind":
		s.review["kind"] = args[0]
	case "silent":
		s.response = nil
	case "echo":
		s.echo(object)
	default:
		panic("no such word: " + word)
	}
}

func (s *said) op(op, path string, value any) {
	s.patch = append(s.patch, map[string]any{"op": op, "path": path, "value": value})
}

// deny refuses: deny:CODE:REASON:MESSAGE, all of which may be missing.
func (s *said) deny(args []string) {
	s.response["allowed"] = false
	status := map[string]any{}
	if code, err := strconv.Atoi(args[0]); err == nil {
		status["code"] = code
	}
	for i, name := range []string{"reason", "message", "status"} {
		if len(args) > i+1 && args[i+1] != "" {
			status[name] = args[i+1]
		}
	}
	if len(status) > 0 {
		s.response["status"] = status
	}
}

// echo tells the client what the hook was asked.
func (s *said) echo(object map[string]any) {
	asked := encode(plain(s.request))
	if !s.mutates || object == nil {
		s.response["allowed"], s.response["status"] = false, map[string]any{"code": 460, "message": asked}
		return
	}
	m, _ := object["metadata"].(map[string]any)
	if m["annotations"] == nil {
		s.op("add", "/metadata/annotations", map[string]any{})
	}
	s.op("add", "/metadata/annotations/echo", asked)
}

// plain leaves out of a request what differs between servers.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		result := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			switch k {
			case "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time":
				result[k] = fmt.Sprintf("%T", v[k])
			case "managedFields":
				list, _ := v[k].([]any)
				result[k] = len(list)
			case "annotations":
				notes, _ := plain(v[k]).(map[string]any)
				delete(notes, "echo")
				result[k] = notes
			case "userInfo", "serviceAccountName", "serviceAccount":
			default:
				result[k] = plain(v[k])
			}
		}
		return result
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	}
	return v
}

// serveConversion converts widgets: the field size of v1 is the field width of v2. The words say what else it does.
func serveConversion(w http.ResponseWriter, r *http.Request, review map[string]any, words []string) {
	request, _ := review["request"].(map[string]any)
	desired, _ := request["desiredAPIVersion"].(string)
	objects, _ := request["objects"].([]any)
	converted := []any{}
	for _, o := range objects {
		object, _ := o.(map[string]any)
		converted = append(converted, convertWidget(object, desired, words))
	}
	response := map[string]any{
		"uid": request["uid"], "convertedObjects": converted, "result": map[string]any{"status": "Success"},
	}
	for _, word := range words {
		arguments := strings.Split(word, ":")
		if misbehave(w, r, arguments) {
			return
		}
		switch arguments[0] {
		case "fail":
			response["result"] = map[string]any{"status": "Failure", "message": arguments[1]}
		case "mute":
			response["result"] = map[string]any{"status": "Failure"}
		case "uid":
			response["uid"] = "other"
		case "lose":
			response["convertedObjects"] = []any{}
		case "kindless":
			review["kind"] = "Other"
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, encode(map[string]any{
		"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response,
	}))
}

func convertWidget(object map[string]any, desired string, words []string) map[string]any {
	if from, _ := object["apiVersion"].(string); from == desired {
		return object
	}
	object["apiVersion"] = desired
	spec, _ := object["spec"].(map[string]any)
	from, to := "size", "width"
	if strings.HasSuffix(desired, "v1") {
		from, to = to, from
	}
	if value, ok := spec[from]; ok {
		delete(spec, from)
		spec[to] = value
	}
	m, _ := object["metadata"].(map[string]any)
	for _, word := range words {
		switch name, value, _ := strings.Cut(word, ":"); name {
		case "label":
			m["labels"] = map[string]any{"converted": strings.ReplaceAll(desired, "/", ".")}
		case "annotate":
			m["annotations"] = map[string]any{"converted": desired}
		case "badlabel":
			m["labels"] = map[string]any{"not a label": "x"}
		case "rename":
			m["name"] = value
		case "uidchange":
			m["uid"] = value
		case "reversion":
			object["apiVersion"] = value
		case "rekind":
			object["kind"] = value
		case "finalize":
			m["finalizers"] = []any{"example.com/x"}
		case "nometa":
			delete(object, "metadata")
		case "extra":
			spec["extra"] = "x"
		}
	}
	return object
}
