package multicluster

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
)

func TestRequestString(t *testing.T) {
	for want, r := range map[string]Request{
		"cluster://eu/default/a":   RequestFor("eu", "default", "a"),
		"cluster://eu/shop/ns/a":   RequestFor("eu/shop", "ns", "a"),
		"cluster://eu//node-1":     RequestFor("eu", "", "node-1"),
		"default/a":                RequestFor(LocalCluster, "default", "a"),
		"cluster://default.eu/b/c": RequestFor("default.eu", "b", "c"),
	} {
		if r.String() != want {
			t.Errorf("%q, want %q", r, want)
		}
	}
}

func TestAnnouncementsAreChecked(t *testing.T) {
	for _, c := range []struct {
		a    Announcement
		says string // empty: nothing is wrong
	}{
		{Announcement{Name: "a", Config: &rest.Config{}}, ""},
		{Announcement{Name: "a", NotReady: "being provisioned"}, ""},
		{Announcement{Name: "eu/shop.example", Config: &rest.Config{}}, ""},
		{Announcement{Config: &rest.Config{}}, "the name is empty"},
		{Announcement{Name: "a//b", Config: &rest.Config{}}, `"" in the name`},
		{Announcement{Name: "A", Config: &rest.Config{}}, `"A" in the name`},
		{Announcement{Name: "a"}, "there is no config"},
	} {
		err := c.a.validate()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.a, err, c.says)
		}
	}
}

func TestClusterFilters(t *testing.T) {
	prod := ClusterInfo{Name: "a", Labels: map[string]string{"env": "prod"}}
	other := ClusterInfo{Name: "b"}
	for name, f := range map[string]func(ClusterInfo) bool{
		"labels":   MatchLabels(map[string]string{"env": "prod"}),
		"selector": MatchSelector(labels.SelectorFromSet(labels.Set{"env": "prod"})),
	} {
		if !f(prod) || f(other) {
			t.Errorf("%s: %v for %v, %v for %v", name, f(prod), prod, f(other), other)
		}
	}
}

func TestClusterErrorsSayWhy(t *testing.T) {
	for want, err := range map[string]error{
		`cluster "a": the cluster is not live: Joining, connection refused`: &clusterError{
			Cluster: "a",
			State:   Joining, Reason: "connection refused", Err: ErrClusterNotLive,
		},
		`cluster "a": the cluster is not live: Draining`: &clusterError{
			Cluster: "a", State: Draining,
			Err: ErrClusterNotLive,
		},
		`cluster "a": no such cluster`: &clusterError{Cluster: "a", State: Gone, Err: ErrClusterNotFound},
	} {
		if err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := error(&clusterError{Err: ErrClusterGone}); !errors.Is(err, ErrClusterGone) {
		t.Error("ErrClusterGone is not found in it")
	}
}
