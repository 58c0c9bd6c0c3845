package adopt

import (
	"strings"
	"testing"
)

// newServer returns a server with a Deployment and its two ReplicaSets, and the state of a cache.
func newServer() (s *Server, cached Owner, children func() []Child) {
	cached = Owner{Name: "web", UID: "1"}
	s = &Server{owner: &Owner{Name: "web", UID: "1"}, children: []*Child{
		{Name: "web-a", App: "web", Owner: "1"}, {Name: "web-b", App: "web", Owner: "1"},
	}}
	return s, cached, func() (list []Child) {
		for _, c := range s.children {
			list = append(list, *c)
		}
		return list
	}
}

// spare deletes the Deployment but keeps the ReplicaSets: the Deployment is marked, and the garbage collector removes
// the owner from them.
func (s *Server) spare() {
	s.owner.Deleting = true
	for _, c := range s.children {
		c.Owner = ""
	}
}

func (s *Server) want(t *testing.T, requests, why string) {
	t.Helper()
	if got := strings.Join(s.Requests, ", "); got != requests {
		t.Fatalf("%s\nThe requests are: %s\nwant:             %s", why, got, requests)
	}
	s.Requests = nil
}

func Test1SparedIsSpared(t *testing.T) {
	s, cached, children := newServer()
	s.spare()
	claimed, err := Claim(s, cached, children()) // The cache does not know yet that the Deployment is being deleted.
	s.owner = nil                                // The Deployment is gone now.
	s.collect()
	if len(s.children) != 2 {
		t.Fatalf("A user deleted the Deployment and asked to spare its two ReplicaSets. %d of them are left.\n"+
			"Claim was called with a Deployment from a cache that was late. It has adopted both again, and then the "+
			"garbage collector found two ReplicaSets of a Deployment that does not exist.", len(s.children))
	}
	if len(claimed) != 0 || err == nil {
		t.Fatalf("Claim returns %v and the error %v. It has adopted nothing, and should say why: the sync is tried "+
			"again, when the cache knows more.", claimed, err)
	}
}

func Test2TheOwnerIsGone(t *testing.T) {
	for what, live := range map[string]*Owner{
		"no such Deployment": nil, "another one of this name": {Name: "web", UID: "2"},
	} {
		s, cached, children := newServer()
		s.spare()
		s.owner = live
		if _, err := Claim(s, cached, children()); err == nil {
			t.Fatalf("The cache has the Deployment with UID 1. The server has %s. Claim has "+
				"adopted ReplicaSets for the one that is gone.", what)
		}
		if s.collect(); len(s.children) != 2 {
			t.Fatalf("The server has %s. %d of two ReplicaSets are left.", what, len(s.children))
		}
	}
}

func Test3OrphansAreAdopted(t *testing.T) {
	s, cached, children := newServer()
	for _, c := range s.children {
		c.Owner = ""
	}
	claimed, err := Claim(s, cached, children())
	if err != nil || len(claimed) != 2 || s.children[0].Owner != "1" {
		t.Fatalf("The Deployment exists, and two ReplicaSets match and have no owner. Claim returns %v and %v.",
			claimed, err)
	}
	s.want(t, `get web, set owner of web-a to "1", set owner of web-b to "1"`,
		"One question is enough for both of them.")
}

func Test4NothingToAdoptCostsNothing(t *testing.T) {
	s, cached, children := newServer()
	claimed, err := Claim(s, cached, children())
	if err != nil || len(claimed) != 2 {
		t.Fatalf("Two ReplicaSets belong to the Deployment. Claim returns %v and %v.", claimed, err)
	}
	s.want(t, "", "Nothing is to be adopted. Nearly all calls are of this kind, and each question is a request.")
	s.spare()
	cached.Deleting = true
	if claimed, err = Claim(s, cached, children()); err != nil || len(claimed) != 0 {
		t.Fatalf("The cache knows that the Deployment is being deleted. Claim returns %v and %v.", claimed, err)
	}
	s.want(t, "", "The cache knows that the Deployment is being deleted, so nobody has to be asked.")
}

func Test5OthersAreLeftAlone(t *testing.T) {
	s, cached, children := newServer()
	s.children[0].Owner = "7"
	s.children[1].App = "other"
	claimed, err := Claim(s, cached, children())
	if err != nil || len(claimed) != 0 {
		t.Fatalf("web-a belongs to somebody else, and web-b does not match any more. Claim returns %v and %v.",
			claimed, err)
	}
	s.want(t, `set owner of web-b to ""`, "web-b is released, web-a is left alone.")
}
