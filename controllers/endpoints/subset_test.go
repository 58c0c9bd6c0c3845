package endpoints

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/internal/serving"
)

// The recording has what k8s.io/kubernetes v1.37.2 with k8s.io/api v0.37.2 makes of subsets that overlap in all ways.
// Ours must be equal to the byte, including the order.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/endpoints/util.go, RepackSubsets
func TestRepackAsUpstream(t *testing.T) {
	raw, err := os.ReadFile("testdata/repack.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ In, Out []corev1.EndpointSubset }
	if err := json.Unmarshal(raw, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for i, c := range cases {
		got, want := asJSON(t, RepackSubsets(c.In)), asJSON(t, c.Out)
		if got != want {
			t.Errorf("case %d:\ngot  %s\nwant %s", i, got, want)
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/endpoints/util_test.go, TestPackSubsets
func TestRepack(t *testing.T) {
	x, y := tcp("x", 1), tcp("y", 2)
	sameIP := func(i int) corev1.EndpointAddress { return address(i, atIP("9.9.9.9")) }
	bare := corev1.EndpointAddress{IP: "9.9.9.9"}
	tests := []struct {
		name     string
		in, want []corev1.EndpointSubset
	}{
		{"nothing", nil, []corev1.EndpointSubset{}},
		{"no address", []corev1.EndpointSubset{{Ports: http}}, []corev1.EndpointSubset{}},
		{
			"no port",
			[]corev1.EndpointSubset{{Addresses: addresses(1)}, {NotReadyAddresses: addresses(2)}},
			[]corev1.EndpointSubset{{Addresses: addresses(1), NotReadyAddresses: addresses(2)}},
		},
		{
			"one port, two addresses, sorted",
			[]corev1.EndpointSubset{{Addresses: addresses(2), Ports: http}, {Addresses: addresses(1), Ports: http}},
			[]corev1.EndpointSubset{{Addresses: addresses(1, 2), Ports: http}},
		},
		{
			"one address, two ports",
			[]corev1.EndpointSubset{
				{Addresses: addresses(1), Ports: []corev1.EndpointPort{y}},
				{Addresses: addresses(1), Ports: []corev1.EndpointPort{x}},
			},
			[]corev1.EndpointSubset{{Addresses: addresses(1), Ports: []corev1.EndpointPort{x, y}}},
		},
		{
			"ports with different addresses stay apart",
			[]corev1.EndpointSubset{
				{Addresses: addresses(1, 2), Ports: []corev1.EndpointPort{x}},
				{Addresses: addresses(1), Ports: []corev1.EndpointPort{y}},
			},
			[]corev1.EndpointSubset{
				{Addresses: addresses(1), Ports: []corev1.EndpointPort{y}},
				{Addresses: addresses(1, 2), Ports: []corev1.EndpointPort{x}},
			},
		},
		{
			"ports with the same addresses in other states stay apart",
			[]corev1.EndpointSubset{
				{Addresses: addresses(1), Ports: []corev1.EndpointPort{x}},
				{NotReadyAddresses: addresses(1), Ports: []corev1.EndpointPort{y}},
			},
			[]corev1.EndpointSubset{
				{Addresses: addresses(1), Ports: []corev1.EndpointPort{x}},
				{NotReadyAddresses: addresses(1), Ports: []corev1.EndpointPort{y}},
			},
		},
		{
			"not ready beats ready",
			[]corev1.EndpointSubset{
				{NotReadyAddresses: addresses(1), Ports: http},
				{Addresses: addresses(1), Ports: http},
			},
			[]corev1.EndpointSubset{{NotReadyAddresses: addresses(1), Ports: http}},
		},
		{
			"ready is beaten by not ready",
			[]corev1.EndpointSubset{
				{Addresses: addresses(1), Ports: http},
				{NotReadyAddresses: addresses(1), Ports: http},
			},
			[]corev1.EndpointSubset{{NotReadyAddresses: addresses(1), Ports: http}},
		},
		{
			"one IP of two pods, sorted by UID, the anonymous first",
			[]corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{sameIP(2), bare, sameIP(1)}, Ports: http}},
			[]corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{bare, sameIP(1), sameIP(2)}, Ports: http}},
		},
		{
			"sorted by the bytes of the IP",
			[]corev1.EndpointSubset{
				{
					Addresses: []corev1.EndpointAddress{address(1, atIP("10.0.0.9")), address(2, atIP("10.0.0.10"))},
					Ports:     http,
				},
			},
			[]corev1.EndpointSubset{
				{
					Addresses: []corev1.EndpointAddress{address(2, atIP("10.0.0.10")), address(1, atIP("10.0.0.9"))},
					Ports:     http,
				},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := RepackSubsets(tt.in)
			serving.SortByHash(tt.want) // the order of subsets is checked by the recording
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(got, RepackSubsets(got)); diff != "" {
				t.Errorf("not stable: %s", diff)
			}
		})
	}
}

// Two ports that differ only in the pointer to appProtocol, not in its value, are one.
func TestRepackComparesAppProtocolByValue(t *testing.T) {
	port := func() []corev1.EndpointPort {
		p := tcp("x", 1)
		p.AppProtocol = ptr.To("h2c")
		return []corev1.EndpointPort{p}
	}
	got := RepackSubsets(
		[]corev1.EndpointSubset{{Addresses: addresses(1), Ports: port()}, {Addresses: addresses(2), Ports: port()}},
	)
	if want := []corev1.EndpointSubset{{Addresses: addresses(1, 2), Ports: port()}}; !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
}

// The layout depends on what is packed, not on the order in which it was added.
func TestPackIgnoresOrder(t *testing.T) {
	type fact struct {
		address int
		port    corev1.EndpointPort
		state   state
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var facts []fact
		for range r.IntN(20) {
			facts = append(facts, fact{r.IntN(6), tcp("p", int32(1+r.IntN(4))), []state{ready, notReady}[r.IntN(2)]})
		}
		pack := func() []corev1.EndpointSubset {
			var p packer
			for _, f := range facts {
				p.add(address(f.address), f.port, f.state)
			}
			return p.pack()
		}
		want := pack()
		r.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
		if diff := cmp.Diff(want, pack()); diff != "" {
			t.Fatalf("%v: %s", facts, diff)
		}
		if slices.ContainsFunc(want, isEmpty) {
			t.Fatalf("%v: an empty subset", facts)
		}
	}
}
