package indexer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keyed is an object that an index finds under every key of its data.
func keyed(name string, version int, values []string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: fmt.Sprint(version)},
		Data:       map[string]string{},
	}
	for _, v := range values {
		m.Data[v] = ""
	}
	return m
}

// byKeys returns every value twice. The object must be found once.
func byKeys(m *corev1.ConfigMap) (values []string, err error) {
	for v := range m.Data {
		values = append(values, v, v)
	}
	return values, nil
}

// TestIndexOfManyValues: objects with few and with many values come and go. Each is found under its values and no
// others.
func TestIndexOfManyValues(t *testing.T) {
	x := New[*corev1.ConfigMap](nil, Options{})
	must(0, x.AddIndex("keys", byKeys))
	r := rand.New(rand.NewPCG(3, 4))
	state := map[string][]string{}
	for version := range 300 {
		name, values := fmt.Sprint("m", r.IntN(4)), []string{}
		for v := range 3 * fewTerms {
			if r.IntN(4) < version%5 { // from none to most
				values = append(values, fmt.Sprint(v))
			}
		}
		state[name] = values
		must(x.Apply([]deltafifo.Delta[*corev1.ConfigMap]{{Object: keyed(name, version+1, values)}}))
		for v := range 3 * fewTerms {
			var got, want []string
			for _, m := range must(x.ByIndex("keys", fmt.Sprint(v))) {
				got = append(got, m.Name)
			}
			for name, values := range state {
				if slices.Contains(values, fmt.Sprint(v)) {
					want = append(want, name)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("version %d: under %d are %v, want %v", version, v, got, want)
			}
		}
	}
}

// TestIndexOfManyValuesIsLinear: if an object with 20,000 values in an index gains or loses one, that costs far less
// than comparing each with each, 400 million times.
func TestIndexOfManyValuesIsLinear(t *testing.T) {
	x := New[*corev1.ConfigMap](nil, Options{})
	must(0, x.AddIndex("keys", byKeys))
	var values []string
	for v := range 20_000 {
		values = append(values, fmt.Sprint("value-", v))
	}
	processor := func() time.Duration { // Other processes take time, too, so the time of the wall clock says little.
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano())
	}
	least := time.Hour // The least of several, because other goroutines take some of it.
	for version := range 10 {
		begin := processor()
		must(
			x.Apply(
				[]deltafifo.Delta[*corev1.ConfigMap]{
					{Object: keyed("m", version+1, values[version:len(values)-10+version])},
				},
			),
		)
		least = min(least, processor()-begin)
	}
	if least > time.Second {
		t.Errorf("an update took %v of processor time", least)
	}
}
