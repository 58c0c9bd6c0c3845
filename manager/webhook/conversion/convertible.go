package conversion

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Hub marks the version of a kind that all other versions convert to and from.
type Hub interface {
	runtime.Object
	Hub()
}

// Convertible is a version of a kind that is not the hub. Types whose methods take another interface with the methods
// of [Hub], such as controller-runtime's, can be converted too.
type Convertible interface {
	runtime.Object
	// ConvertTo writes the receiver into hub, an empty object with the receiver's metadata.
	ConvertTo(hub Hub) error
	// ConvertFrom writes hub into the receiver, an empty object with the hub's metadata.
	ConvertFrom(hub Hub) error
}

// Converter converts objects of a kind between any two of its versions.
type Converter interface {
	// ConvertObject writes src into dst, an empty object of another version with the metadata of src. The objects have
	// their kinds and versions.
	//
	// Concurrency: it is called by several goroutines at once.
	ConvertObject(ctx context.Context, src, dst runtime.Object) error
}

// IsConvertible reports whether the scheme has several versions of obj's kind that convert through a hub. It is false
// without an error if none of them has a method of [Hub] or [Convertible].
//
// Errors: the scheme does not know obj; there is not exactly one hub; a version that is not the hub cannot be
// converted. The error names the missing methods.
func IsConvertible(scheme *runtime.Scheme, obj runtime.Object) (bool, error) {
	_, err := hubConverterOf(scheme, obj)
	if errors.Is(err, errNoConversion) {
		return false, nil
	}
	return err == nil, err
}

var errNoConversion = errors.New("the kind has no conversion")

// NewHubConverter returns a Converter that calls the methods of the Go types of obj's kind. [Webhook.RegisterHub]
// registers it.
//
// Errors: see [IsConvertible]; the types have no methods of [Hub] and [Convertible].
func NewHubConverter(scheme *runtime.Scheme, obj runtime.Object) (Converter, error) {
	c, err := hubConverterOf(scheme, obj)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// hubConverter converts the objects of a kind by the methods of their types.
type hubConverter struct {
	newHub func() runtime.Object
}

// hubConverterOf returns the converter of obj's kind. Its errors are those of IsConvertible, and errNoConversion if
// there is nothing to convert: the kind has one version only, or no version has the methods.
func hubConverterOf(scheme *runtime.Scheme, obj runtime.Object) (*hubConverter, error) {
	versions, err := versionsOf(scheme, obj)
	if err != nil {
		return nil, err
	}
	var hubs, spokes, others []string
	var c *hubConverter
	for _, kind := range versions {
		version, err := scheme.New(kind)
		if err != nil {
			return nil, fmt.Errorf("make an object of %s: %w", kind, err)
		}
		switch {
		case isHub(version):
			hubs = append(hubs, kind.Version)
			of := reflect.TypeOf(version).Elem()
			c = &hubConverter{func() runtime.Object { return reflect.New(of).Interface().(runtime.Object) }}
		case isSpoke(version):
			spokes = append(spokes, kind.Version)
		default:
			others = append(others, kind.Version)
		}
	}
	what := versions[0].GroupKind()
	switch {
	case len(versions) == 1, len(hubs)+len(spokes) == 0:
		return nil, errNoConversion
	case len(hubs) == 0:
		return nil, fmt.Errorf("no version of %s is the hub: give one of its types the method Hub()", what)
	case len(hubs) > 1:
		return nil, fmt.Errorf("%s has several hubs (%s): leave the method Hub() to one of its types", what,
			strings.Join(hubs, ", "))
	case len(others) > 0:
		return nil, fmt.Errorf("%s has versions that cannot be converted (%s): give their types the methods ConvertTo "+
			"and ConvertFrom", what, strings.Join(others, ", "))
	}
	return c, nil
}

// versionsOf returns all kinds in the scheme of the group and kind of obj, in order.
func versionsOf(scheme *runtime.Scheme, obj runtime.Object) ([]schema.GroupVersionKind, error) {
	own, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		return nil, err
	}
	var all []schema.GroupVersionKind
	for kind := range scheme.AllKnownTypes() {
		if kind.GroupKind() == own[0].GroupKind() && kind.Version != runtime.APIVersionInternal {
			all = append(all, kind)
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.Version, b.Version) })
	return all, nil
}

// ConvertObject implements [Converter].
func (c *hubConverter) ConvertObject(_ context.Context, src, dst runtime.Object) error {
	if isHub(src) {
		return call(dst, convertFrom, src)
	}
	if isHub(dst) {
		return call(src, convertTo, dst)
	}
	hub := c.newHub()
	if err := copyMetadata(src, hub); err != nil {
		return err
	}
	if err := call(src, convertTo, hub); err != nil {
		return fmt.Errorf("to the hub %T: %w", hub, err)
	}
	if err := call(dst, convertFrom, hub); err != nil {
		return fmt.Errorf("from the hub %T: %w", hub, err)
	}
	return nil
}

const (
	convertTo   = "ConvertTo"
	convertFrom = "ConvertFrom"
)

func isHub(obj runtime.Object) bool {
	_, ok := obj.(Hub)
	return ok
}

func isSpoke(obj runtime.Object) bool {
	if _, ok := obj.(Convertible); ok {
		return true
	}
	return foreign(obj, convertTo).IsValid() && foreign(obj, convertFrom).IsValid()
}

// call calls a method of [Convertible].
func call(spoke runtime.Object, method string, hub runtime.Object) error {
	if own, ok := spoke.(Convertible); ok {
		if method == convertTo {
			return own.ConvertTo(hub.(Hub))
		}
		return own.ConvertFrom(hub.(Hub))
	}
	f := foreign(spoke, method)
	if !f.IsValid() {
		return fmt.Errorf("%T has no method %s", spoke, method)
	}
	err, _ := f.Call([]reflect.Value{reflect.ValueOf(hub)})[0].Interface().(error)
	return err
}

var (
	errorType = reflect.TypeFor[error]()
	hubType   = reflect.TypeFor[Hub]()
)

// foreign returns the method of obj with that name if it is like that of [Convertible], but its parameter is another
// interface, all of whose methods [Hub] has. Otherwise the result is not valid.
//
// Both calls of MethodByName have a constant name. With a variable, the linker would keep every exported method of
// every type of the program.
func foreign(obj runtime.Object, method string) reflect.Value {
	f := reflect.ValueOf(obj).MethodByName(convertTo)
	if method == convertFrom {
		f = reflect.ValueOf(obj).MethodByName(convertFrom)
	}
	if !f.IsValid() {
		return f
	}
	t := f.Type()
	if t.NumIn() != 1 || t.NumOut() != 1 || t.Out(0) != errorType || t.In(0).Kind() != reflect.Interface ||
		!hubType.Implements(t.In(0)) {
		return reflect.Value{}
	}
	return f
}
