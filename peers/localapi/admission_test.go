package localapi

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAdmission plays the scripts in testdata/admission. They hold at least 200 requests. Both servers call the same
// webhooks.
//
// A step MUTATING or VALIDATING replaces the script's configuration of that kind. The body lists its webhooks, of which
// only what differs from the usual is said: they are for all operations on config maps, have no side effects, and are
// called at ${hook.url} with the given path.
//
//	MUTATING
//	- {name: a, path: label:x:1}
//	- {name: b, path: deny, rules: {operations: [DELETE], resources: [pods]}, failurePolicy: Ignore}
//
// The step ends when the server calls the new webhooks.
func TestAdmission(t *testing.T) {
	server := hookServer(t)
	known := newLedger(known)
	requests := 0
	for _, s := range readScripts(t, filepath.Join("testdata", "admission")) {
		for _, st := range s.steps {
			if st.isRequest() {
				requests++
			}
		}
		t.Run(s.name, func(t *testing.T) {
			p := newPair(t, s, known)
			giveHooks(p, server)
			p.play(t)
			p.withdraw(t)
			if *rewrite {
				s.rewriteIn(t, filepath.Join("testdata", "admission"))
			}
		})
	}
	t.Logf("%d requests", requests)
}

// withdraw removes the configurations of a script.
func (p *pair) withdraw(t *testing.T) {
	t.Helper()
	for _, plural := range configurations {
		st := &step{method: http.MethodDelete, target: registration + plural + "/" + p.script.name}
		for _, s := range []*side{p.real, p.ours} {
			if _, err := s.send(t.Context(), st); err != nil {
				t.Error(err)
			}
		}
	}
}

const registration = "/apis/admissionregistration.k8s.io/v1/"

// configurations are the resources of the configurations that a step replaces.
var configurations = map[string]string{
	"MUTATING": "mutatingwebhookconfigurations", "VALIDATING": "validatingwebhookconfigurations",
}

// configure replaces the configuration of a script, and waits until the server follows it.
func (s *side) configure(ctx context.Context, st *step) (answer, error) {
	var hooks []map[string]any
	if err := yaml.Unmarshal([]byte(s.expand(st.body)), &hooks); err != nil {
		return answer{}, err
	}
	s.generation++
	probe := fmt.Sprint(s.script.name, "-", s.generation)
	hooks = append([]map[string]any{{
		"name": "probe", "path": "probe:" + probe,
		"objectSelector": map[string]any{"matchLabels": map[string]any{"probe": probe}},
	}}, hooks...)
	prefix, kind := "v", "ValidatingWebhookConfiguration"
	if st.method == "MUTATING" {
		prefix, kind = "m", "MutatingWebhookConfiguration"
	}
	for i := range hooks {
		hooks[i] = s.webhook(hooks[i], prefix)
	}
	body := map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
		"metadata": map[string]any{"name": s.script.name}, "webhooks": hooks,
	}
	a, err := s.put(ctx, registration+configurations[st.method], body, st.headers)
	if err != nil || a.code >= http.StatusBadRequest {
		return a, err
	}
	waiting := &step{
		method: http.MethodPost, target: "configmaps?dryRun=All", retry: true, code: http.StatusTeapot,
		body: fmt.Sprintf("metadata: {name: probe, labels: {probe: %q}}", probe), codeOnly: true,
	}
	if _, err = perform(ctx, s, waiting); err == nil {
		err = ctx.Err()
	}
	return a, err
}

// put creates or replaces an object.
func (s *side) put(ctx context.Context, collection string, body map[string]any, h http.Header) (answer, error) {
	m := body["metadata"].(map[string]any)
	at := collection + "/" + m["name"].(string)
	there, err := s.send(ctx, &step{method: http.MethodGet, target: at, headers: h})
	if err != nil {
		return answer{}, err
	}
	st := &step{method: http.MethodPost, target: collection, headers: h}
	if there.code == http.StatusOK {
		old := there.body.(map[string]any)["metadata"].(map[string]any)
		m["resourceVersion"] = old["resourceVersion"]
		st.method, st.target = http.MethodPut, at
	}
	st.body, st.raw = encode(body), true
	return s.send(ctx, st)
}

// webhook completes a webhook of a script.
func (s *side) webhook(h map[string]any, prefix string) map[string]any {
	hook, _ := s.kept["hook"].(map[string]any)
	rules := map[string]any{
		"operations": []any{"*"}, "apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"},
	}
	if s.everything {
		rules["apiGroups"], rules["resources"] = []any{"*"}, []any{"*"}
	}
	if more, ok := h["rules"].(map[string]any); ok {
		rules, _ = merge(rules, more).(map[string]any)
	}
	path, _ := h["path"].(string)
	client := map[string]any{"url": fmt.Sprint(hook["url"], "/", prefix, "/", path), "caBundle": hook["ca"]}
	if c, ok := h["clientConfig"].(map[string]any); ok {
		client = c
	}
	delete(h, "path")
	usual := map[string]any{
		"sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "timeoutSeconds": 5,
		"namespaceSelector": map[string]any{
			"matchLabels": map[string]any{"kubernetes.io/metadata.name": s.script.name},
		},
	}
	full, _ := merge(usual, h).(map[string]any)
	full["name"] = fmt.Sprint(h["name"], ".", s.script.name, ".example.com")
	full["clientConfig"] = client
	full["rules"] = []any{rules}
	return full
}

// admitted are the configurations of generated sequences. All are for all kinds of objects there.
var admitted = []struct{ mutating, validating string }{
	{`- {name: a, path: "label:m:1"}`, `- {name: a, path: "warn:seen"}`},
	{
		`- {name: a, path: count, objectSelector: {matchLabels: {g: "1"}}}`,
		`- {name: a, path: deny, rules: {operations: [DELETE]}}`,
	},
	{
		"- {name: a, path: count, reinvocationPolicy: IfNeeded}\n- {name: b, path: \"label:b:2\"}",
		`- {name: a, path: "deny:409:Conflict:no", objectSelector: {matchLabels: {g: "1"}}, rules: {operations: [UPDATE]}}`,
	},
	{
		`- {name: a, path: text, failurePolicy: Ignore}`,
		`- {name: a, path: "deny:::status", rules: {resources: ["*/status"]}}`,
	},
	{
		`- {name: a, path: "set:metadata.annotations:{\"a\": \"b\"}", rules: {operations: [CREATE]}}`,
		`- {name: b, path: panic, rules: {operations: [DELETE]}, objectSelector: {matchLabels: {g: "1"}}}`,
	},
	{
		`- {name: a, path: "finalizer:example.com/y", rules: {operations: [CREATE]}}`,
		`- {name: a, path: allow, sideEffects: NoneOnDryRun}`,
	},
	{
		`- {name: a, path: "set:metadata.labels.g:\"2\"", rules: {operations: [UPDATE]}}`,
		`- {name: a, path: text, failurePolicy: Ignore}`,
	},
	{
		`- {name: a, path: "label:n:x", namespaceSelector: {matchLabels: {nosuch: label}}}`,
		`- {name: a, path: "deny:403", rules: {resources: ["*/scale"], operations: [UPDATE]}}`,
	},
}

// TestGeneratedAdmission plays sequences as [TestGenerated] does, with webhooks that see all requests.
func TestGeneratedAdmission(t *testing.T) {
	server := hookServer(t)
	known := newLedger(known)
	for seed := range *seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := generate(uint64(seed), *steps)
			s.name = fmt.Sprint("admitted-", seed)
			hooks := admitted[seed%len(admitted)]
			configure := []*step{
				{method: "MUTATING", body: hooks.mutating, headers: http.Header{}},
				{method: "VALIDATING", body: hooks.validating, headers: http.Header{}},
			}
			s.steps = append(configure, s.steps...)
			p := newPair(t, s, known)
			giveHooks(p, server)
			for _, side := range []*side{p.real, p.ours} {
				side.everything = true
			}
			p.play(t)
			p.withdraw(t)
		})
	}
}
