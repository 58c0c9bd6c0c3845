package cel_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
)

// BenchmarkCreate creates custom resources of the type Room, which has two rules, with and without evaluating them.
func BenchmarkCreate(b *testing.B) {
	for name, o := range map[string]localapi.Options{"rules": {CEL: cel.New()}, "without": {}} {
		b.Run(name, func(b *testing.B) {
			definition, err := read(roomsYAML)
			if err != nil {
				b.Fatal(err)
			}
			server := localapi.NewTestWith(b, o, definition)
			client, err := dynamic.NewForConfig(server.RESTConfig())
			if err != nil {
				b.Fatal(err)
			}
			room, err := read("{apiVersion: example.com/v1, kind: Room, spec: {guests: 1, beds: 2, floor: 3}}")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				room.SetName(fmt.Sprint("room-", i))
				if _, err := client.Resource(rooms).Create(b.Context(), room, metav1.CreateOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDefine creates the definition of Room on a new server. The first of a process also builds the environments.
func BenchmarkDefine(b *testing.B) {
	definition, err := read(roomsYAML)
	if err != nil {
		b.Fatal(err)
	}
	for name, o := range map[string]localapi.Options{"rules": {CEL: cel.New()}, "without": {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := localapi.NewTestWith(b, o, definition).Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
