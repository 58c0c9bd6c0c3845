package controllers

import (
	"slices"
	"strings"
	"testing"
)

// Source: k8s.io/controller-manager v0.37.2 app/helper.go, and kube-controller-manager's behaviour when run.
func TestSelection(t *testing.T) {
	known := []descriptor{
		{name: "a-controller", aliases: []string{"a"}},
		{name: "b-controller", aliases: []string{"b", "bb"}},
		{name: "off-controller", aliases: []string{"off"}, disabled: true},
	}
	for _, c := range []struct{ selection, want string }{
		{"*", "a-controller b-controller"},
		{"*,off", "a-controller b-controller off-controller"},
		{"off", "off-controller"},
		{"a", "a-controller"},
		{"a-controller,bb", "a-controller b-controller"},
		{"*,-b", "a-controller"},
		{"-b,*", "a-controller"},
		{"*,-b-controller", "a-controller"},
		{"*,-a,a", "b-controller"}, // the first mention wins
		{"*,a,-a", "a-controller b-controller"},
		{"*,-a,a-controller", "b-controller"}, // also under another of its names
		{"b,-bb", "b-controller"},
		{"-a", ""}, // without "*" only those that are named
		{"*,*", "a-controller b-controller"},
	} {
		got, err := choose(known, strings.Split(c.selection, ","))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, %v; want %s", c.selection, got, err, c.want)
		}
	}
	if got, err := choose(known, nil); err != nil || len(got) != 2 {
		t.Errorf("nil: got %v, %v; want what * means", got, err)
	}
	if got, err := choose(known, []string{}); err != nil || len(got) != 0 {
		t.Errorf("empty: got %v, %v; want none", got, err)
	}
}

func TestUnknownNames(t *testing.T) {
	_, err := Enabled([]string{"*", "-nonesuch", "x", "deployment"})
	if err == nil {
		t.Fatal("unknown names were accepted")
	}
	for _, part := range []string{
		`"nonesuch" is not in the list of known controllers: deployment-controller (deployment), endpoints-controller (endpoint, endpoints), endpointslice-controller (endpointslice), endpointslice-mirroring-controller (endpointslicemirroring), `,
		`"x" is not in the list of known controllers`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if _, err := Enabled([]string{""}); err == nil {
		t.Error("an empty name was accepted")
	}
}

// Source: kube-controller-manager v1.37.2 cmd/kube-controller-manager/names/controller_names.go.
func TestNamesAreKubeControllerManagers(t *testing.T) {
	want := map[string]string{
		"deployment-controller":              "deployment",
		"endpoints-controller":               "endpoint",
		"endpointslice-controller":           "endpointslice",
		"endpointslice-mirroring-controller": "endpointslicemirroring",
		"garbage-collector-controller":       "garbagecollector",
		"replicaset-controller":              "replicaset",
	}
	seen := map[string]bool{}
	for _, d := range known {
		if alias := want[d.name]; alias == "" || !slices.Contains(d.aliases, alias) {
			t.Errorf("%s: aliases %q, want %q among them", d.name, d.aliases, alias)
		}
		for _, name := range append([]string{d.name}, d.aliases...) {
			if seen[name] {
				t.Errorf("the name %s is there twice", name)
			}
			seen[name] = true
		}
	}
	if len(known) != len(want) || !slices.IsSorted(Known()) {
		t.Errorf("known: %q", Known())
	}
}
