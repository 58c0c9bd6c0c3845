// Package scheme is the solution of task 05c.
package scheme

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Kind is a kind of objects.
type Kind struct{ Group, Version, Kind string }

// String returns the apiVersion and the kind: "apps/v1 Deployment".
func (k Kind) String() string { return k.apiVersion() + " " + k.Kind }

// apiVersion returns "group/version", or the version if the group has no name.
func (k Kind) apiVersion() string { return strings.TrimPrefix(k.Group+"/"+k.Version, "/") }

// ParseKind returns the kind of an object with that apiVersion and kind.
func ParseKind(apiVersion, kind string) Kind {
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	return Kind{group, version, kind}
}

// Resource is the place where a server keeps the objects of a kind.
type Resource struct {
	// Plural is its name in paths: "deployments".
	Plural string
	// Namespaced means that each object is in a namespace.
	Namespaced bool
}

// Unstructured is an object without a Go type: a tree of maps.
type Unstructured map[string]any

// Scheme knows kinds, their Go types and their resources.
type Scheme struct {
	types     map[Kind]reflect.Type // of structs
	kinds     map[reflect.Type]Kind
	resources map[Kind]Resource
}

// New returns a Scheme that knows nothing.
func New() *Scheme {
	return &Scheme{map[Kind]reflect.Type{}, map[reflect.Type]Kind{}, map[Kind]Resource{}}
}

// Register adds a kind. prototype is a pointer to a struct.
func (s *Scheme) Register(k Kind, r Resource, prototype any) error {
	t := reflect.TypeOf(prototype).Elem()
	if known, ok := s.types[k]; ok && known != t {
		return fmt.Errorf("%s has the Go type %s already, so it cannot have %s", k, known, t)
	}
	if known, ok := s.kinds[t]; ok && known != k {
		return fmt.Errorf("the Go type %s is of the kind %s already, so it cannot be of %s", t, known, k)
	}
	s.types[k], s.kinds[t], s.resources[k] = t, k, r
	return nil
}

// Decode makes an object of JSON.
func (s *Scheme) Decode(text []byte) (any, error) {
	var says struct{ APIVersion, Kind string }
	if err := json.Unmarshal(text, &says); err != nil {
		return nil, err
	}
	if says.APIVersion == "" || says.Kind == "" {
		return nil, errors.New("the JSON has no apiVersion or no kind")
	}
	if t, ok := s.types[ParseKind(says.APIVersion, says.Kind)]; ok {
		obj := reflect.New(t).Interface()
		if err := json.Unmarshal(text, obj); err != nil {
			return nil, err
		}
		return obj, nil
	}
	obj := Unstructured{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return obj, decoder.Decode(&obj)
}

// KindOf returns the kind of an object.
func (s *Scheme) KindOf(obj any) (Kind, error) {
	if u, ok := obj.(Unstructured); ok {
		apiVersion, _ := u["apiVersion"].(string)
		kind, _ := u["kind"].(string)
		return ParseKind(apiVersion, kind), nil
	}
	t := reflect.TypeOf(obj)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k, ok := s.kinds[t]
	if !ok {
		return Kind{}, fmt.Errorf("the Go type %s is not registered", t)
	}
	return k, nil
}

// Encode makes JSON of an object.
func (s *Scheme) Encode(obj any) ([]byte, error) {
	k, err := s.KindOf(obj)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	fields["apiVersion"], _ = json.Marshal(k.apiVersion())
	fields["kind"], _ = json.Marshal(k.Kind)
	return json.Marshal(fields)
}

// Path returns the path of an object, or that of all objects if the name is empty.
func (s *Scheme) Path(k Kind, namespace, name string) (string, error) {
	r, ok := s.resources[k]
	if !ok {
		return "", fmt.Errorf("the kind %s is not registered", k)
	}
	path := "/apis/" + k.apiVersion()
	if k.Group == "" {
		path = "/api/" + k.apiVersion()
	}
	if r.Namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + r.Plural
	if name != "" {
		path += "/" + name
	}
	return path, nil
}
