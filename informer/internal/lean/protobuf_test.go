package lean

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEveryBuiltinType: the decoder decodes random objects of all API types as their own decoders do, whatever it
// decoded before, and rejects none.
func TestEveryBuiltinType(t *testing.T) {
	d := NewDecoder()
	types := builtins()
	if len(types) < 150 {
		t.Fatalf("only %d types", len(types))
	}
	for seed, empty := range types {
		for round := range 6 {
			f := filler{rand.New(rand.NewPCG(uint64(seed%5), uint64(round/3))), 3}
			obj := empty()
			f.fill(reflect.ValueOf(obj).Elem(), 0)
			data, err := obj.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			got := empty()
			if err := d.Unmarshal(data, got, round != 2); err != nil {
				t.Errorf("%T: %v", obj, err)
			}
			same(t, data, got, empty())
		}
	}
}

// same checks that got is the result of the type's own decoder, without the managed fields.
func same(t *testing.T, data []byte, got, want message) {
	t.Helper()
	if err := want.Unmarshal(data); err != nil {
		t.Errorf("%T: the standard decoder says %v", want, err)
		return
	}
	trim(reflect.ValueOf(want))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%T: got\n%+v\nwant\n%+v", want, got, want)
	}
}

// trim removes the managed fields from an object and from the objects within it.
func trim(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			trim(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			trim(v.Index(i))
		}
	case reflect.Struct:
		if f := v.FieldByName("TypeMeta"); f.IsValid() && f.Type() == typeMeta {
			if m, ok := v.Addr().Interface().(metav1.Object); ok {
				m.SetManagedFields(nil)
			}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				trim(v.Field(i))
			}
		}
	}
}

// FuzzUnmarshal: Unmarshal rejects the bytes, or decodes them as the type's own decoder does.
func FuzzUnmarshal(f *testing.F) {
	types := builtins()
	slices.SortFunc(types, func(a, b func() message) int { // They come from a map.
		if fmt.Sprintf("%T", a()) < fmt.Sprintf("%T", b()) {
			return -1
		}
		return 1
	})
	for i, empty := range types {
		obj := empty()
		filler{rand.New(rand.NewPCG(1, uint64(i))), 2}.fill(reflect.ValueOf(obj).Elem(), 0)
		// TestEveryBuiltinType covers the others.
		if data, err := obj.Marshal(); err == nil && i%4 == 0 && len(data) < 2048 {
			f.Add(uint16(i), data)
		}
	}
	d := NewDecoder()
	f.Fuzz(func(t *testing.T, kind uint16, data []byte) {
		empty := types[int(kind)%len(types)]
		for range 3 { // From the third time on parts are shared.
			got := empty()
			if err := d.Unmarshal(data, got, true); err != nil {
				return
			}
			plain := withoutManagedFields(data)
			if err := empty().Unmarshal(data); err != nil && empty().Unmarshal(plain) != nil {
				t.Fatalf("%T: decoded what the standard decoder refuses: %v", got, err)
			}
			same(t, plain, got, empty())
		}
	})
}

// withoutManagedFields removes the managed fields, field 17 of field 1. Unmarshal does not decode them, so it does not
// find errors in them. The metadata of a list has no such field.
func withoutManagedFields(data []byte) (kept []byte) {
	for at := 0; at < len(data); {
		r := next(data, at)
		if r.end == 0 {
			return append(kept, data[at:]...)
		}
		if r.tag != 1<<3|wireBytes {
			kept = append(kept, data[at:r.end]...)
			at = r.end
			continue
		}
		var content []byte
		for rest := data[r.start:r.end]; len(rest) > 0; {
			inner := next(rest, 0)
			if inner.end == 0 {
				content = append(content, rest...)
				break
			}
			if inner.number() != managedFieldsNumber {
				content = append(content, rest[:inner.end]...)
			}
			rest = rest[inner.end:]
		}
		kept = append(kept, 1<<3|wireBytes)
		kept = appendVarint(kept, uint64(len(content)))
		kept = append(kept, content...)
		at = r.end
	}
	return kept
}

func appendVarint(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// TestDecodersAtOnce: several decoders that decode a type for the first time, all at once, decode it alike.
func TestDecodersAtOnce(t *testing.T) {
	plans.Clear()
	data, err := sibling(1).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var decoders sync.WaitGroup
	for range 4 {
		decoders.Go(func() {
			d := NewDecoder()
			for range 3 { // From the third time on parts are shared.
				got := &corev1.Pod{}
				if err := d.Unmarshal(data, got, true); err != nil {
					t.Error(err)
				}
				same(t, data, got, &corev1.Pod{})
			}
		})
	}
	decoders.Wait()
}

// TestEqualPartsAreOne: labels, environments and probes that pods have in common are in memory at most half as often as
// there are pods. An object that must not share has its own.
func TestEqualPartsAreOne(t *testing.T) {
	d := NewDecoder()
	decode := func(name string, share bool) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"app": "web"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Env: []corev1.EnvVar{{Name: "A", Value: "b"}}, LivenessProbe: &corev1.Probe{PeriodSeconds: 3},
				VolumeMounts: []corev1.VolumeMount{{Name: name}},
			}}},
		}
		data, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got := &corev1.Pod{}
		if err := d.Unmarshal(data, got, share); err != nil {
			t.Fatal(err)
		}
		if got.ManagedFields != nil {
			t.Error("managed fields were decoded")
		}
		return got
	}
	labels, env, probes := map[uintptr]bool{}, map[*corev1.EnvVar]bool{}, map[*corev1.Probe]bool{}
	var c *corev1.Pod
	for i := range 1000 {
		c = decode(fmt.Sprint("a", i), true)
		labels[reflect.ValueOf(c.Labels).Pointer()] = true
		env[&c.Spec.Containers[0].Env[0]] = true
		probes[c.Spec.Containers[0].LivenessProbe] = true
	}
	if len(labels) > 500 || len(env) > 500 || len(probes) > 500 {
		t.Errorf("of 1000 pods there are %d labels, %d environments, %d probes", len(labels), len(env), len(probes))
	}
	alone := decode("d", false)
	alone.Labels["app"] = "db"
	alone.Spec.Containers[0].Env[0].Value = "c"
	alone.Spec.Containers[0].LivenessProbe.PeriodSeconds = 4
	if c.Labels["app"] != "web" || c.Spec.Containers[0].Env[0].Value != "b" ||
		c.Spec.Containers[0].LivenessProbe.PeriodSeconds != 3 {
		t.Error("a pod that was to be exclusive shares parts")
	}
}
