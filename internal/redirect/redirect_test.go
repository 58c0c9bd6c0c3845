package redirect

import (
	"net/http"
	"testing"
)

// logged wraps a transport, and tells which.
type logged struct{ http.RoundTripper }

func (l logged) WrappedRoundTripper() http.RoundTripper { return l.RoundTripper }

// TestRefuseWrapsOnce: a client that is made from a config whose transport refuses redirects adds nothing.
func TestRefuseWrapsOnce(t *testing.T) {
	once := Refuse(http.DefaultTransport)
	if _, ok := once.(*transport); !ok {
		t.Fatalf("%T does not refuse", once)
	}
	if Refuse(once) != once {
		t.Error("wrapped twice")
	}
	if l := (logged{once}); Refuse(l) != http.RoundTripper(l) {
		t.Error("wrapped again above another wrapper")
	}
	if _, ok := Refuse(logged{http.DefaultTransport}).(*transport); !ok {
		t.Error("not wrapped above another wrapper")
	}
}
