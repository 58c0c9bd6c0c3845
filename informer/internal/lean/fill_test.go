package lean

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// message is an object of the API, or another type that decodes itself.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// builtins returns empty objects of all types in client-go's scheme that have a protobuf encoding.
func builtins() (all []func() message) {
	seen := map[reflect.Type]bool{}
	for kind, t := range scheme.Scheme.AllKnownTypes() {
		_, decodes := reflect.New(t).Interface().(message)
		if decodes && kind.Version != runtime.APIVersionInternal && !seen[t] {
			seen[t] = true
			all = append(all, func() message { return reflect.New(t).Interface().(message) })
		}
	}
	return all
}

// filler makes random objects with few different values, so that parts recur.
type filler struct {
	*rand.Rand
	// size is the largest size of lists and maps.
	size int
}

// fill sets everything within v to random values.
func (f filler) fill(v reflect.Value, depth int) {
	if f.special(v) {
		return
	}
	if depth > 14 || (depth > 2 && f.IntN(4) == 0) {
		return // Stays empty.
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.word())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(f.number())
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.IntN(200)))
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		n := f.IntN(f.size + 1)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.IntN(f.size + 1) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, 0)
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), depth+1)
			}
		}
	}
}

// special sets values that must have a certain form.
func (f filler) special(v reflect.Value) bool {
	switch t := v.Addr().Interface().(type) {
	case *metav1.TypeMeta: // Not encoded.
	case *metav1.Time:
		*t = metav1.Unix(int64(f.IntN(5))*1e8, 0)
	case *metav1.MicroTime:
		*t = metav1.MicroTime{Time: time.UnixMicro(f.Int64N(1e15))}
	case *resource.Quantity:
		*t = resource.MustParse(strconv.Itoa(f.IntN(4)) + []string{"", "m", "Mi", "e3"}[f.IntN(4)])
	case *runtime.RawExtension:
		t.Raw = fmt.Appendf(nil, `{"a":%d}`, f.IntN(3))
	case *runtime.Object:
	default:
		return false
	}
	return true
}

func (f filler) word() string {
	switch f.IntN(8) {
	case 0:
		return ""
	case 1:
		return strconv.Itoa(f.IntN(1e6))
	case 2:
		return "größe-\x00-\xff" // Protobuf decoders do not check UTF-8.
	}
	return []string{"web", "db", "app.kubernetes.io/name", "kube-system", "true"}[f.IntN(5)]
}

func (f filler) number() int64 {
	switch f.IntN(4) {
	case 0:
		return 0
	case 1:
		return -1
	case 2:
		return int64(f.IntN(1 << 30))
	}
	return int64(f.IntN(5))
}
