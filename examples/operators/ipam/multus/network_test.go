package multus_test

import (
	"testing"

	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
)

func TestSliced(t *testing.T) {
	for _, c := range []struct {
		config string
		want   *multus.SlicedNetwork
		wrong  bool
	}{
		{config: ""},
		{config: " \n"},
		{config: `{`, wrong: true},
		{config: `[]`, wrong: true},
		{config: `{"ipam":{"type":"whereabouts","range":7}}`, wrong: true},
		{config: `{"ipam":{"type":"host-local","range":"r","node_slice_size":"s"}}`},
		{config: `{"name":"n","ipam":{"type":"whereabouts","range":"r"}}`},
		{config: `{"name":"n","ipam":{"type":"whereabouts","node_slice_size":"s"}}`},
		{config: `{"ipam":{"type":"whereabouts","range":"r","node_slice_size":"s"}}`, wrong: true},
		{config: `{"name":"N_1","ipam":{"type":"whereabouts","range":"r","node_slice_size":"s"}}`, wrong: true},
		{
			config: `{"name":"n","ipam":{"type":"whereabouts","range":"r","node_slice_size":"s"}}`,
			want:   &multus.SlicedNetwork{Name: "n", Range: "r", SliceSize: "s"},
		},
		{
			config: `{"name":"n","plugins":[{"ipam":{}},{"ipam":{"type":"whereabouts","range":"r","node_slice_size":"s","network_name":"m"}}]}`,
			want:   &multus.SlicedNetwork{Name: "m", Network: "m", Range: "r", SliceSize: "s"},
		},
	} {
		nad := &multus.NetworkAttachmentDefinition{Spec: multus.NetworkAttachmentDefinitionSpec{Config: c.config}}
		got, err := nad.Sliced()
		if (err != nil) != c.wrong || (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, %v", c.config, got, err)
		}
	}
}
