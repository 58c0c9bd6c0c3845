package schemas

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// text has the schema of each type, as YAML, in the order of their names. TestSchemas writes it.
//
//go:embed schemas.yaml
var text string

// between separates two types in text.
const between = "\n- name: "

// texts returns the YAML of each type by its name.
var texts = sync.OnceValue(func() map[string]string {
	all := strings.Split(text, between)[1:]
	byName := make(map[string]string, len(all))
	for _, t := range all {
		name, _, _ := strings.Cut(t, "\n")
		byName[name] = t
	}
	return byName
})

// Converter converts objects of the built-in types to typed values. It may be used concurrently.
type Converter struct {
	scheme *runtime.Scheme
	kinds  sync.Map // schema.GroupVersionKind → managedfields.TypeConverter
}

// NewConverter returns a converter of the types in scheme.
func NewConverter(scheme *runtime.Scheme) *Converter { return &Converter{scheme: scheme} }

// ObjectToTyped implements [managedfields.TypeConverter].
func (c *Converter) ObjectToTyped(obj runtime.Object, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	converter, known := c.kinds.Load(kind)
	if !known {
		name, err := c.scheme.ToOpenAPIDefinitionName(kind)
		if err != nil {
			return nil, err
		}
		types, err := reachable(name)
		if err != nil {
			return nil, err
		}
		parser := &typed.Parser{Schema: schema.Schema{Types: types}}
		converter, _ = c.kinds.LoadOrStore(kind, managedfields.NewSchemeTypeConverter(c.scheme, parser))
	}
	return converter.(managedfields.TypeConverter).ObjectToTyped(obj, o...)
}

// TypedToObject implements [managedfields.TypeConverter].
func (c *Converter) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	return managedfields.NewSchemeTypeConverter(c.scheme, nil).TypedToObject(v)
}

// reachable parses the type, and all that its fields refer to.
func reachable(name string) ([]schema.TypeDef, error) {
	var types []schema.TypeDef
	seen := map[string]bool{name: true}
	for todo := []string{name}; len(todo) > 0; {
		name, todo = todo[0], todo[1:]
		source, known := texts()[name]
		if !known {
			return nil, fmt.Errorf("no schema for type %s", name)
		}
		var parsed []schema.TypeDef
		if err := yaml.Unmarshal([]byte(between+source), &parsed); err != nil {
			return nil, fmt.Errorf("schema of type %s: %w", name, err)
		}
		types = append(types, parsed...)
		for _, next := range references(parsed[0].Atom, nil) {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return types, nil
}

// references appends the names of the types that a refers to.
func references(a schema.Atom, names []string) []string {
	add := func(r schema.TypeRef) {
		if r.NamedType != nil {
			names = append(names, *r.NamedType)
		}
		names = references(r.Inlined, names)
	}
	if a.List != nil {
		add(a.List.ElementType)
	}
	if a.Map != nil {
		add(a.Map.ElementType)
		for _, f := range a.Map.Fields {
			add(f.Type)
		}
	}
	return names
}
