// Package pages is task 02b: a list in pages that stops working after an hour.
//
// ListAll fetches all objects in pages. A program calls it twice. When it starts, it asks for version "0": any state
// that the server has at hand. Later, after its watch was lost, it asks for its position: nothing older than what it
// has seen.
//
// In small clusters all is well. In large ones the program starts, works for an hour, and does not see anything any
// more after the first break of its watch. The log repeats one error. client-go v0.16.15 has this bug in
// tools/pager/pager.go. kubernetes/kubernetes#85221 reports what it did: kube-controller-manager lost sight of the
// heartbeats of all nodes, and took the nodes for dead.
//
// Run the tests, read the code, and find out which request the server refuses. Then look at what else happens to the
// request that you change.
package pages

import "errors"

// ErrExpired is the server's answer 410: it does not have that version any more.
var ErrExpired = errors.New("410: the version is too old")

// Options are the parameters of a request.
type Options struct {
	// ResourceVersion is how old the list may be: "0" is any age, a number is not older than this, "" is the newest.
	ResourceVersion string
	// Limit is the most objects that a page may have; 0 means all.
	Limit int
	// Continue is the token of the page before.
	Continue string
}

// Page is an answer.
type Page struct {
	Names           []string
	ResourceVersion string
	// Continue is the token of the next page, "" if this is the last.
	Continue string
}

// Server answers requests for a page.
type Server interface {
	List(o Options) (Page, error)
}

// ListAll returns all objects as one page. It asks for as many at a time as o.Limit says. If the server forgets the
// version in the middle, it asks for all at once.
func ListAll(s Server, o Options) (Page, error) {
	var all Page
	for {
		page, err := s.List(o)
		if errors.Is(err, ErrExpired) && o.Continue != "" {
			// The pages so far are worth nothing. One answer needs no history.
			o.Continue, o.Limit = "", 0
			return s.List(o)
		}
		if err != nil {
			return Page{}, err
		}
		all.Names = append(all.Names, page.Names...)
		all.ResourceVersion = page.ResourceVersion
		if page.Continue == "" {
			return all, nil
		}
		o.Continue = page.Continue
	}
}
