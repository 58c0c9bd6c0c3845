package localapi

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
	"sigs.k8s.io/yaml"
)

// difference is a place where two answers differ.
type difference struct {
	path       string // "code", "headers.Warning", "body.spec.replicas", "body.items.0.metadata.name"
	real, ours any    // nil: absent
}

func (d difference) String() string {
	show := func(v any) string {
		if v == nil {
			return "absent"
		}
		return encode(v)
	}
	return fmt.Sprintf("%s: real %s, ours %s", d.path, show(d.real), show(d.ours))
}

// differences finds all places where two trees differ.
func differences(path string, real, ours any) []difference {
	if reflect.DeepEqual(real, ours) {
		return nil
	}
	below := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	var found []difference
	switch r := real.(type) {
	case map[string]any:
		o, ok := ours.(map[string]any)
		if !ok {
			break
		}
		keys := map[string]bool{}
		for k := range r {
			keys[k] = true
		}
		for k := range o {
			keys[k] = true
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			found = append(found, differences(below(k), r[k], o[k])...)
		}
		return found
	case []any:
		o, ok := ours.([]any)
		if !ok {
			break
		}
		for i := range max(len(r), len(o)) {
			var a, b any
			if i < len(r) {
				a = r[i]
			}
			if i < len(o) {
				b = o[i]
			}
			found = append(found, differences(below(fmt.Sprint(i)), a, b)...)
		}
		return found
	}
	return []difference{{path, real, ours}}
}

// knownDifference is one that is meant, and listed in docs/divergence.md.
type knownDifference struct {
	// script, request and path say where it occurs: regular expressions for the whole name of the script, the whole
	// first line of the request ("POST pods"; "" is any), and the whole path in the answer.
	script, request, path string

	// ours is what our answer says there, as JSON: a regular expression, "" for anything.
	ours string

	// same reports whether the two differ in nothing else than what the reason says; nil if that is not looked at.
	same func(real, ours any) bool

	reason string
}

// ledger keeps which of the known differences occurred.
type ledger struct {
	known []knownDifference

	mu   sync.Mutex
	seen []bool
}

func newLedger(known []knownDifference) *ledger {
	return &ledger{known: known, seen: make([]bool, len(known))}
}

func matches(expression, text string) bool {
	return expression == "" || regexp.MustCompile("^(?:"+expression+")$").MatchString(text)
}

// explains reports whether a difference is known.
func (l *ledger) explains(script, request string, d difference) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, k := range l.known {
		if matches(k.script, script) && matches(k.request, request) && matches(k.path, d.path) &&
			matches(k.ours, encode(d.ours)) && (k.same == nil || k.same(d.real, d.ours)) {
			l.seen[i] = true
			return true
		}
	}
	return false
}

// check fails the test for known differences that did not occur.
func (l *ledger) check(t *testing.T) {
	t.Helper()
	for i, k := range l.known {
		if !l.seen[i] {
			t.Errorf("a difference that is listed as known did not occur: script %q, request %q, path %q: %s",
				k.script, k.request, k.path, k.reason)
		}
	}
}

// sameButForOrder reports whether two messages differ in nothing else than the order of the fields in an object that
// they quote.
func sameButForOrder(real, ours any) bool {
	sorted := func(message any) string {
		text, _ := message.(string)
		return quotedObject.ReplaceAllStringFunc(text, func(quoted string) string {
			object, err := strconv.Unquote(quoted)
			var v any
			if err != nil || json.Unmarshal([]byte(object), &v) != nil {
				return quoted
			}
			return encode(v)
		})
	}
	return sorted(real) == sorted(ours)
}

// quotedObject matches an object as Go quotes its JSON in a message.
var quotedObject = regexp.MustCompile(`"\{(?:[^"\\]|\\.)*\}"`)

// unified shows two answers as a unified diff.
func unified(real, ours map[string]any) string {
	text := func(v any) []string {
		data, err := yaml.Marshal(v)
		if err != nil {
			return []string{err.Error()}
		}
		return difflib.SplitLines(string(data))
	}
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: text(real), B: text(ours), FromFile: "kube-apiserver", ToFile: "localapi", Context: 3,
	})
	if err != nil {
		return err.Error()
	}
	return diff
}

// asTree is a value as its JSON.
func asTree(t *testing.T, v any) any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// decodeInto reads JSON.
func decodeInto(r io.Reader, v any) error { return json.NewDecoder(r).Decode(v) }
