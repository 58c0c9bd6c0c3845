package lean

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// custom returns a random custom resource with few different values, so that parts recur.
func custom(r *rand.Rand) map[string]any {
	metadata := map[string]any{
		"name": "n" + strconv.Itoa(r.IntN(1e6)), "namespace": "team",
		"labels": map[string]any{"app": "web"},
	}
	if r.IntN(2) == 0 {
		metadata["managedFields"] = []any{
			map[string]any{"manager": "m", "fieldsV1": map[string]any{"f:a": map[string]any{}}},
		}
	}
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata,
		"spec": anything(r, 0),
		"status": map[string]any{
			"managedFields": anything(r, 3),
			"metadata":      map[string]any{"managedFields": []any{int64(1)}},
		},
	}
}

func anything(r *rand.Rand, depth int) any {
	n := 10
	if depth > 4 {
		n = 7
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.IntN(5))
	case 3:
		return []any{r.Int64() - 1<<62, 1.5, 1e300, float64(1 << 60)}[r.IntN(4)]
	case 4, 5, 6:
		return []string{"", "web", "ümlaut", "a \"quoted\"\n\\line", "\u2028<>&", "x" +
			strconv.Itoa(r.IntN(1e6))}[r.IntN(6)]
	case 7:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, anything(r, depth+1))
		}
		return list
	default:
		m := map[string]any{}
		for range r.IntN(4) {
			m[[]string{"name", "value", "x-y", "größe", "a\"b", "items"}[r.IntN(6)]] = anything(r, depth+1)
		}
		return m
	}
}

// standardTree decodes text with the standard decoder and removes the managed fields.
func standardTree(text []byte) (map[string]any, error) {
	var m map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &m); err != nil {
		return nil, err
	}
	if metadata, ok := m["metadata"].(map[string]any); ok {
		if _, ok := metadata["managedFields"].([]any); ok {
			unstructured.RemoveNestedField(m, "metadata", "managedFields")
		}
	}
	return m, nil
}

// TestRandomCustomResources: the decoder decodes every random object as the standard decoder does. Neither what it
// decoded before nor white space changes the result, and it rejects none.
func TestRandomCustomResources(t *testing.T) {
	d := NewDecoder()
	for i := range 3000 {
		r := rand.New(rand.NewPCG(uint64(i/3), 1)) // Each comes three times.
		text, err := json.Marshal(custom(r))
		if err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 && i%2 == 0 {
			var spaced bytes.Buffer
			_ = json.Indent(&spaced, text, " ", "\t")
			text = spaced.Bytes()
		}
		want, err := standardTree(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Tree(inPieces(t, text, r.IntN(50)+1), i%7 != 0)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %v, got\n%#v\nwant\n%#v", text, err, got, want)
		}
	}
}

// TestDeepPartsAreNotShared: of an object that is nested very deep, only parts in the upper levels are looked up. Each
// look hashes the whole text of a part.
func TestDeepPartsAreNotShared(t *testing.T) {
	const levels = 1000 // three times that is less than a field is judged after
	text := []byte(`{"spec":` + strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat("}", levels+1))
	d := NewDecoder()
	for range 3 {
		got, err := d.Tree(inPieces(t, text, len(text)), true)
		want, wantErr := standardTree(text)
		if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, %v", err, wantErr)
		}
	}
	looked := 0
	for _, s := range d.subtrees {
		looked += int(s.asked)
	}
	if most := 3 * deepestShared; looked == 0 || looked > most {
		t.Errorf("%d parts were looked up, want some and at most %d", looked, most)
	}
}

// inPieces indexes text that arrives in pieces.
func inPieces(t *testing.T, text []byte, size int) Value {
	t.Helper()
	var x Index
	for n := size; ; n += size {
		done, err := x.Scan(text[:min(n, len(text))])
		if err != nil || (!done && n >= len(text)) {
			t.Fatalf("%s: done %v, %v", text, done, err)
		}
		if done {
			if x.Len() != len(bytes.TrimRight(text, " \n\t")) {
				t.Fatalf("%d of %d bytes are the value", x.Len(), len(text))
			}
			return x.Value(text)
		}
	}
}

// FuzzTree: Tree rejects a text or decodes it as the standard decoder does, and DropManagedFields changes nothing else.
func FuzzTree(f *testing.F) {
	for i := range uint64(40) {
		text, _ := json.Marshal(custom(rand.New(rand.NewPCG(i, 2))))
		f.Add(text)
	}
	for _, odd := range []string{
		`{"a":1,"a":2}`, `{"a":01}`, `{"a":-0}`, `{"a":1e400}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `{"a":tru{}}`,
		`{"a":1"b}c"}`, `{"a":[1,]}`, `{"a"}`, `{,}`, `{"a":x{,"b":[]}`,
		`{"metadata":{"managedFields":[{"a":1}],"b":2}}`, `{"metadata":{"managedFields":null}}`,
		`{"metadata":{"managedFields":[],"managedFields":[1]}}`, ` {} `, `{"a":123456789012345678901}`,
		// Elsewhere the same text keeps its managed fields.
		`{"status":{"managedFields":[]}}`, `{"metadata":{"managedFields":[]}}`, `{"status":{"managedFields":[]}}`,
	} {
		f.Add([]byte(odd))
	}
	d := NewDecoder()
	f.Fuzz(func(t *testing.T, text []byte) {
		text = bytes.Trim(text, " \n\t\r") // As the stream returns it.
		v, err := ValueOf(text)
		if err != nil || len(v.Bytes()) != len(text) {
			return
		}
		want, wrong := standardTree(text)
		for range 3 { // From the third time on parts are shared.
			got, err := d.Tree(v, true)
			if err != nil {
				break
			}
			if wrong != nil && !malformedManagedFields(text) {
				t.Fatalf("decoded what the standard decoder refuses: %v", wrong)
			}
			if wrong == nil && !reflect.DeepEqual(got, want) {
				t.Fatalf("got\n%#v\nwant\n%#v", got, want)
			}
		}
		v.DropManagedFields()
		got, err := standardTree(v.Bytes())
		if wrong != nil || err != nil {
			return
		}
		if metadata, ok := got["metadata"].(map[string]any); ok && metadata["managedFields"] == nil && len(want) > 0 {
			delete(metadata, "managedFields")
			if metadata, ok := want["metadata"].(map[string]any); ok && metadata["managedFields"] == nil {
				delete(metadata, "managedFields")
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("without managed fields\n%#v\nwant\n%#v", got, want)
		}
	})
}

// malformedManagedFields reports whether text is valid apart from its managed fields, which are not decoded.
func malformedManagedFields(text []byte) bool {
	v, err := ValueOf(bytes.Clone(text))
	if err != nil {
		return false
	}
	v.DropManagedFields()
	_, err = standardTree(v.Bytes())
	return err == nil
}
