package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flyball-dev/flyball/client/manifest"
)

// told describes the objects, one line for each.
func told(all []manifest.Object) string {
	var lines []string
	for _, o := range all {
		lines = append(lines, o.From+": "+o.GetAPIVersion()+" "+o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	return strings.Join(lines, "\n")
}

// TestRead reads each form of a document.
func TestRead(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":  {"", ""},
		"comments": {"# a\n---\n# b\n---\n\n", ""},
		"yaml": {
			"---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ns}\n--- # the second\n# " +
				"nothing\n---\n{apiVersion: v1, kind: Pod, metadata: {name: b}}\n",
			"f, document 1: v1 Pod ns/a\nf, document 3: v1 Pod /b",
		},
		"lines that end as elsewhere": {
			"apiVersion: v1\r\nkind: Pod\r\nmetadata: {name: a}\r\n---\r\napiVersion: v1\r\nkind: Pod\r\nmetadata: " +
				"{name: b}\r\n", "f, document 1: v1 Pod /a\nf, document 2: v1 Pod /b",
		},
		"json in a row": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}` + "\n---\n" + `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"}}`,
			"f, document 1: v1 Pod /a\nf, document 2: v1 Pod /b\nf, document 3: v1 Pod /c",
		},
		"json with what yaml has no escape for": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","annotations":{"b":"\ud83d\ude80 \/"}}}`,
			"f, document 1: v1 Pod /a",
		},
		"json, then yaml": {
			"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\n---\napiVersion: v1\nkind: " +
				"Pod\nmetadata: {name: b}\n", "f, document 1: v1 Pod /a\nf, document 2: v1 Pod /b",
		},
		"lists in a list": {
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- apiVersion: " +
				"v1\n  kind: PodList\n  items: [{apiVersion: v1, kind: Pod, metadata: {name: b}}]\n",
			"f, document 1, item 1: v1 Pod /a\nf, document 1, item 2, item 1: v1 Pod /b",
		},
		"an empty list": {"apiVersion: v1\nkind: List\nitems: []\n", ""},
		"a line within a text": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: |\n    ---\n    c\n",
			"f, document 1: v1 ConfigMap /a",
		},
	} {
		all, err := manifest.Read("f", strings.NewReader(c.text))
		if got := told(all); err != nil || got != c.want {
			t.Errorf("%s: %v,\n%s\nwant\n%s", name, err, got, c.want)
		}
	}
}

// TestReadKeepsNumbers: integers that a float cannot hold, and strings that look like numbers.
func TestReadKeepsNumbers(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec: {big: 9007199254740993, half: 0.5, text: '08'}\n",
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"spec":{"big":9007199254740993,"half":0.5,"text":"08"}}`,
	} {
		all, err := manifest.Read("f", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		spec := all[0].Object["spec"].(map[string]any)
		if spec["big"] != int64(9007199254740993) || spec["half"] != 0.5 || spec["text"] != "08" {
			t.Errorf("%v of %s", spec, text)
		}
	}
}

// TestReadRefuses: errors name the document and the mistake.
func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                         "f, document 1: yaml: ",
		"hello":                        "f, document 1: json: cannot unmarshal string",
		"---\napiVersion: v1\nkind: A": "f, document 1: A without metadata.name",
		"kind: A\nmetadata: {name: a}": "f, document 1: an object without apiVersion or kind",
		"apiVersion: v1\nkind: A\nmetadata: {name: a}\nmetadata: {name: b}": "already set in map",
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a","name":"b"}}`: `f, document 1: duplicate field "metadata.name"`,
		"# nothing\n---\na: [": "f, document 2: ",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: A, metadata: {name: a}}, {apiVersion: v1, kind: " +
			"A}]": "f, document 1: item 2: A without metadata.name",
		"a: b\n--- c\n": "f, document 1: ",
	} {
		if all, err := manifest.Read("f", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, told(all), err, want)
		}
	}
}

// TestReadFiles reads a file, a directory and standard input.
func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	one := func(name string) string { return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + "}}" }
	for file, text := range map[string]string{
		"b.yaml": one("b"),
		"a.json": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, "notes.txt": "none",
		"below/c.yaml": one("c"), "kustomization.yaml": "{kind: Kustomization, resources: [b.yaml]}",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := manifest.ReadFiles([]string{filepath.Join(dir, "below", "c.yaml"), "-", dir},
		strings.NewReader(one("in")))
	want := "below/c.yaml, document 1: v1 Pod /c\nstandard input, document 1: v1 Pod /in\na.json, document 1: v1 Pod " +
		"/a\nb.yaml, document 1: v1 Pod /b"
	if got := strings.ReplaceAll(told(all), dir+"/", ""); err != nil || got != want {
		t.Errorf("%v,\n%s\nwant\n%s", err, got, want)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.yaml"): "no such file",
		t.TempDir():                     "no objects in ",
	} {
		if _, err := manifest.ReadFiles([]string{path}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestReadFSMissesNothing: a pattern that matches nothing is a mistake.
func TestReadFSMissesNothing(t *testing.T) {
	files := fstest.MapFS{"a.yaml": {Data: []byte("a: [")}}
	for pattern, want := range map[string]string{
		"*.yml":  "*.yml: file does not exist",
		"a.yaml": "a.yaml, document 1: ", "[": "[: syntax error in pattern",
	} {
		if _, err := manifest.ReadFS(files, pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

// TestFind reads the first object of a kind and refuses unknown fields.
func TestFind(t *testing.T) {
	all, err := manifest.Read("f", strings.NewReader(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: [{verbs: [get], resources: [pods], apiGroups: [""]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: b}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: c}, rule: []}
`))
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.Role
	if err := manifest.Find(all, "Role", &role); err != nil || role.Name != "a" || len(role.Rules) != 1 {
		t.Errorf("%v, %v", role, err)
	}
	if err := manifest.Find(all, "ClusterRole", &rbacv1.ClusterRole{}); err == nil ||
		!strings.Contains(err.Error(), `f, document 3: unknown field "rule"`) {
		t.Error(err)
	}
	if err := manifest.Find(all, "Pod", &role); err == nil || err.Error() != "there is no Pod" {
		t.Error(err)
	}
}
