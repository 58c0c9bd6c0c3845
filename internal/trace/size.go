package trace

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sizeOf estimates how much memory an object takes, in bytes. What the estimate is proportional to is the text in the
// object. Built-in types know the size of their encoding, which takes a fraction of the time of the others.
func sizeOf(o metav1.Object) int {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		return sizeOfTree(o.Object)
	case interface{ Size() int }:
		return o.Size()
	}
	return sizeOfValue(reflect.ValueOf(o))
}

// entry is what an element of a map or a list takes besides its content.
const entry = 16

func sizeOfTree(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case map[string]any:
		n := 0
		for key, field := range v {
			n += entry + len(key) + sizeOfTree(field)
		}
		return n
	case []any:
		n := 0
		for _, element := range v {
			n += entry + sizeOfTree(element)
		}
		return n
	}
	return 8
}

func sizeOfValue(v reflect.Value) int {
	n := 0
	switch v.Kind() {
	case reflect.String:
		return len(v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n = sizeOfValue(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += sizeOfValue(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v.Len()
		}
		for i := range v.Len() {
			n += entry + sizeOfValue(v.Index(i))
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			n += entry + sizeOfValue(each.Key()) + sizeOfValue(each.Value())
		}
	default:
		return 8
	}
	return n
}
