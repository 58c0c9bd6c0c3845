package simtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// end is a state in a form in which two runs can be compared. What may differ between them is replaced: UIDs, times,
// generations, and generated names, whose suffix becomes a number.
type end struct {
	revision int64
	settles  int // how often the user had seen the program settle
	told     int // lines of the story until then
	objects  map[id]map[string]any

	sources map[id]runtime.Object // what objects are made of

	// unchanged are the objects of the start that nobody has written to.
	unchanged map[id]stored
	names     *strings.Replacer
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// normalize returns the state after the revision first in comparable form.
func normalize(s *State, first int64) *end {
	e := &end{revision: s.Revision, objects: map[id]map[string]any{}, unchanged: map[id]stored{}}
	e.sources = map[id]runtime.Object{}
	var changed []id
	for _, i := range s.ids() {
		switch o := s.objects[i]; {
		case bookkeeping(i.resource):
		case o.revision <= first:
			e.unchanged[i] = o
		default:
			changed = append(changed, i)
		}
	}
	canonical := generated(s, changed)
	e.names = replacer(s, canonical)
	for _, i := range changed {
		c := i
		c.name = cmp.Or(canonical[i], e.names.Replace(i.name)) // A name may contain a UID.
		e.objects[c] = e.normal(s.objects[i])
		e.sources[c] = s.objects[i].object
	}
	return e
}

// replacer returns what replaces generated names and UIDs in texts.
func replacer(s *State, canonical map[id]string) *strings.Replacer {
	var pairs [][2]string
	for i, o := range s.objects {
		c := i
		if name := canonical[i]; name != "" {
			c.name = name
			pairs = append(pairs, [2]string{i.name, name})
		}
		if uid := uidOf(o.object); uid != "" {
			pairs = append(pairs, [2]string{uid, "<uid of " + c.String() + ">"})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { // A replacer prefers the first of those that match.
		return cmp.Or(cmp.Compare(len(b[0]), len(a[0])), cmp.Compare(a[0], b[0]))
	})
	flat := make([]string, 0, 2*len(pairs))
	for _, p := range pairs {
		flat = append(flat, p[0], p[1])
	}
	return strings.NewReplacer(flat...)
}

// generated returns names in place of generated ones: the prefix and a number. Objects with the same prefix are
// numbered in the order of their contents.
func generated(s *State, ids []id) map[id]string {
	groups := map[id][]id{}
	blur := map[id]string{} // Within a group, names do not count.
	for _, i := range ids {
		if prefix := prefixOf(s.objects[i].object); prefix != "" {
			g := i
			g.name = prefix
			groups[g] = append(groups[g], i)
			blur[i] = prefix + "*"
		}
	}
	blurred := &end{names: replacer(s, blur)}
	names := map[id]string{}
	for g, members := range groups {
		content := map[id]string{}
		for _, i := range members {
			data, _ := json.Marshal(blurred.normal(s.objects[i])) // fields that came from JSON
			content[i] = string(data)
		}
		slices.SortFunc(members, func(a, b id) int {
			return cmp.Or(cmp.Compare(content[a], content[b]), cmp.Compare(a.name, b.name))
		})
		for n, i := range members {
			names[i] = g.name + "<" + strconv.Itoa(n+1) + ">"
		}
	}
	return names
}

// suffixPattern matches the suffixes that API servers generate.
var suffixPattern = regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// prefixOf returns metadata.generateName if the object's name looks generated. Some controllers set it although they
// choose the name themselves.
func prefixOf(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil || m.GetGenerateName() == "" {
		return ""
	}
	suffix, found := strings.CutPrefix(m.GetName(), m.GetGenerateName())
	if !found || !suffixPattern.MatchString(suffix) {
		return ""
	}
	return m.GetGenerateName()
}

// normal returns the fields of an object in comparable form.
func (e *end) normal(o stored) map[string]any {
	fields := maps.Clone(o.fields())
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{"uid", "resourceVersion", "managedFields", "generation", "creationTimestamp"} {
			delete(metadata, field)
		}
		fields["metadata"] = metadata
	}
	return e.value(fields, generationOf(o)).(map[string]any)
}

func (e *end) value(v any, generation int64) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, field := range v {
			if k == "observedGeneration" {
				m[k] = observed(field, generation)
				continue
			}
			m[e.text(k)] = e.value(field, generation)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = e.value(v[i], generation)
		}
		return list
	case string:
		return e.text(v)
	}
	return v
}

// observed says how far an observed generation is behind.
func observed(v any, generation int64) string {
	if n, ok := v.(int64); ok && n != generation {
		return fmt.Sprintf("<%d behind>", generation-n)
	}
	return "<current>"
}

func (e *end) text(s string) string {
	if len(s) >= len("2006-01-02T15:04:05Z") && s[4] == '-' && s[10] == 'T' {
		if _, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return "<time>"
		}
	}
	s = e.names.Replace(s)
	if len(s) < 36 {
		return s
	}
	return uidPattern.ReplaceAllString(s, "<uid>")
}

// has reports whether an object exists at the end.
func (e *end) has(i id) bool {
	_, written := e.objects[i]
	_, unchanged := e.unchanged[i]
	return written || unchanged
}

// get returns the normal form of an object, or nil.
func (e *end) get(i id) map[string]any {
	if o, ok := e.unchanged[i]; ok {
		return e.normal(o)
	}
	return e.objects[i]
}

func (e *end) source(i id) runtime.Object { return cmp.Or(e.unchanged[i].object, e.sources[i]) }

// diff returns how e differs from want, an object and field in each line.
func (e *end) diff(want *end) []string {
	ids := map[id]bool{}
	for _, side := range []*end{e, want} {
		for i := range side.objects {
			ids[i] = true
		}
		for i := range side.unchanged {
			ids[i] = true
		}
	}
	var lines []string
	for _, i := range slices.SortedFunc(maps.Keys(ids), compareIDs) {
		_, a := e.unchanged[i]
		_, b := want.unchanged[i]
		if a && b {
			continue
		}
		switch mine, theirs := e.get(i), want.get(i); {
		case reflect.DeepEqual(mine, theirs): // as most are: to look for lists and their keys takes longer
		case mine == nil:
			lines = append(lines, i.String()+": is missing")
		case theirs == nil:
			lines = append(lines, i.String()+": is there, and should not be")
		default:
			c := &comparison{object: i.String(), sources: []runtime.Object{e.source(i), want.source(i)}}
			lines = append(lines, c.differences("", mine, theirs)...)
		}
	}
	return lines
}

// comparison compares two states of one object.
type comparison struct {
	object  string
	sources []runtime.Object

	// keys are the fields that tell the items of a list apart, by the path of the list. Lists of the type map have
	// them. Nil: not looked for yet.
	keys map[string][]string
}

// differences compares two values of a field.
func (c *comparison) differences(path string, have, want any) []string {
	if l, ok := have.([]any); ok {
		if m, ok := want.([]any); ok && !reflect.DeepEqual(l, m) {
			have, want = c.items(path, l, m)
		}
	}
	a, ok1 := have.(map[string]any)
	b, ok2 := want.(map[string]any)
	if ok1 && ok2 {
		all := maps.Clone(a)
		maps.Copy(all, b)
		var lines []string
		for _, k := range slices.Sorted(maps.Keys(all)) {
			at := path + k
			if k == "" || k[0] != '[' {
				at = strings.TrimPrefix(path+"."+k, ".")
			}
			lines = append(lines, c.differences(at, a[k], b[k])...)
		}
		return lines
	}
	x, y := shown(have), shown(want)
	if x == y {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s is %s, without faults it is %s", c.object, path, x, y)}
}

// items returns two lists as maps: by key, else by index if they have the same length. Otherwise it returns the lists.
func (c *comparison) items(path string, have, want []any) (a, b any) {
	if c.keys == nil {
		c.keys = map[string][]string{}
		c.learn()
	}
	if keys := c.keys[brackets.ReplaceAllString(path, "")]; keys != nil {
		x, ok1 := byKey(have, keys)
		y, ok2 := byKey(want, keys)
		if ok1 && ok2 {
			return x, y
		}
	}
	if len(have) != len(want) {
		return have, want
	}
	x, y := map[string]any{}, map[string]any{}
	for i := range have {
		k := fmt.Sprintf("[%d]", i)
		x[k], y[k] = have[i], want[i]
	}
	return x, y
}

// brackets matches what stands for an item of a list in a path.
var brackets = regexp.MustCompile(`\[[^\]]*\]`)

// byKey returns the items of a list by what stands for them in a path. It reports false if that is not unique.
func byKey(list []any, keys []string) (map[string]any, bool) {
	items := make(map[string]any, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		var pairs []string
		for _, k := range keys {
			if v, ok := fields[k]; ok {
				pairs = append(pairs, fmt.Sprintf("%s=%v", k, v))
			}
		}
		items["["+strings.Join(pairs, ",")+"]"] = item
	}
	return items, len(items) == len(list)
}

// learn finds the keys of lists in the managed fields of the object.
func (c *comparison) learn() {
	for _, source := range c.sources {
		m, err := meta.Accessor(source)
		if err != nil {
			continue
		}
		for _, manager := range m.GetManagedFields() {
			var set any
			if f := manager.FieldsV1; f != nil && json.Unmarshal(f.GetRawBytes(), &set) == nil {
				c.learnSet("", set)
			}
		}
	}
}

// learnSet finds the keys of lists in a set of managed fields.
func (c *comparison) learnSet(path string, set any) {
	members, _ := set.(map[string]any)
	for name, below := range members {
		if field, ok := strings.CutPrefix(name, "f:"); ok {
			c.learnSet(strings.TrimPrefix(path+"."+field, "."), below)
			continue
		}
		var values map[string]any
		if key, ok := strings.CutPrefix(name, "k:"); ok && json.Unmarshal([]byte(key), &values) == nil {
			c.keys[path] = slices.Sorted(maps.Keys(values))
			c.learnSet(path, below)
		}
	}
}

func shown(v any) string {
	if v == nil {
		return "not set"
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // names have <1> in them, see generated
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	if s := strings.TrimSpace(b.String()); len(s) <= 200 {
		return s
	}
	return b.String()[:200] + "…"
}
