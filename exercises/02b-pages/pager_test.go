package pages

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// server has five objects, which come in pages.
type server struct {
	version  int
	requests []Options
	// expires is the number of the request that is answered with 410; 0 is none.
	expires int
}

var names = []string{"node-1", "node-2", "node-3", "node-4", "node-5"}

func (s *server) List(o Options) (Page, error) {
	s.requests = append(s.requests, o)
	if len(s.requests) > 10 {
		return Page{}, errors.New("429: too many requests")
	}
	if len(s.requests) == s.expires {
		return Page{}, kube.ErrGone
	}
	version, start := s.version, 0
	if o.Continue != "" {
		if o.ResourceVersion != "" && o.ResourceVersion != "0" {
			return Page{}, errors.New("400: specifying resource version is not allowed when using continue")
		}
		if _, err := fmt.Sscanf(o.Continue, "at-%d-from-%d", &version, &start); err != nil {
			return Page{}, fmt.Errorf("400: invalid continue token %q", o.Continue)
		}
	}
	page := Page{ResourceVersion: fmt.Sprint(version), Names: names[start:]}
	if o.Limit > 0 && len(page.Names) > o.Limit {
		page.Names = page.Names[:o.Limit]
		page.Continue = fmt.Sprintf("at-%d-from-%d", version, start+o.Limit)
	}
	return page, nil
}

// check compares a list with what the server has.
func check(t *testing.T, happened string, got Page, err error, version string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s\nThe server answered: %v.\nThe program asks again and gets the same. It sees no change any more.",
			happened, err)
	}
	if have, want := strings.Join(got.Names, " "), strings.Join(names, " "); have != want {
		t.Fatalf("%s\nThe list has [%s], it should have [%s].", happened, have, want)
	}
	if got.ResourceVersion != version || got.Continue != "" {
		t.Fatalf("%s\nThe list is of version %q and goes on with %q. It should be of %s, and complete.", happened,
			got.ResourceVersion, got.Continue, version)
	}
}

func Test1TheFirstList(t *testing.T) {
	s := &server{version: 20}
	got, err := ListAll(s, Options{ResourceVersion: "0", Limit: 2})
	check(t, "The program started, and listed five nodes in pages of two, of any age.", got, err, "20")
}

func Test2AListAfterAnHour(t *testing.T) {
	s := &server{version: 50}
	got, err := ListAll(s, Options{ResourceVersion: "40", Limit: 2})
	check(t, "The program has seen version 40, lost its watch, and listed five nodes in pages of two.", got, err, "50")
}

func Test3NothingOlderIsAccepted(t *testing.T) {
	s := &server{version: 50}
	_, err := ListAll(s, Options{ResourceVersion: "40", Limit: 2})
	if err != nil {
		t.Fatalf("ListAll returned %v.", err)
	}
	if got := s.requests[0].ResourceVersion; got != "40" {
		t.Fatalf("The list may not be older than version 40, and the first request asked for %q. With another version "+
			"the program can be shown the past, or costs the server more than it has to.", got)
	}
}

func Test4EachPageIsBounded(t *testing.T) {
	s := &server{version: 50}
	_, err := ListAll(s, Options{ResourceVersion: "40", Limit: 2})
	if err != nil {
		t.Fatalf("ListAll returned %v.", err)
	}
	for n, o := range s.requests {
		if o.Limit != 2 || (o.Continue == "") != (n == 0) {
			t.Fatalf("Request %d of %d was %+v. Each has the limit 2, and all but the first have a token.", n+1,
				len(s.requests), o)
		}
	}
}

func Test5TheServerForgetsInTheMiddle(t *testing.T) {
	s := &server{version: 50, expires: 2}
	got, err := ListAll(s, Options{ResourceVersion: "40", Limit: 2})
	check(t, "The server answered 410 to the second page. The program asked for all at once.", got, err, "50")
	if o := s.requests[len(s.requests)-1]; o != (Options{ResourceVersion: "40"}) {
		t.Fatalf("The server answered 410 to the second page. Then the program asked with %+v.\nThis request begins a "+
			"new list. It has no token and no limit, and again accepts nothing older than version 40.", o)
	}
}

func Test6TheServerForgetsAtTheBeginning(t *testing.T) {
	s := &server{version: 50, expires: 1}
	if _, err := ListAll(s, Options{ResourceVersion: "40", Limit: 2}); !errors.Is(err, kube.ErrGone) {
		t.Fatalf("The server answered 410 to the first page, and ListAll returned %v. Asking for the same version "+
			"again does not help: the caller has to decide.", err)
	}
}
