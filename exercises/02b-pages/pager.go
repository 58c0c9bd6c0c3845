// Package pages is task 02b: a list in pages that stops working after an hour.
//
// ListAll fetches all objects in pages. A program calls it on two occasions. When it starts, it asks for version "0":
// any state that the server has in memory. Later, when its watch was lost, it asks for its position: a state that is
// not older than what the program has seen.
//
// In small clusters the program works. In large ones it works for an hour, and sees no more changes after its watch
// breaks for the first time. The log repeats one error. client-go v0.16.15 has this bug in tools/pager/pager.go.
// kubernetes/kubernetes#85221 reports a consequence: kube-controller-manager missed the heartbeats of all nodes and
// considered the nodes dead.
//
// Run the tests, read the code, and find out which request the server rejects. Then look at what else uses the request
// that you change.
package pages

import (
	"errors"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Options are the parameters of a request.
type Options struct {
	// ResourceVersion is how old the list may be: "0" means any age, another number means not older than that version,
	// and "" means the newest list.
	ResourceVersion string
	// Limit is how many objects a page may have; 0 means all.
	Limit int
	// Continue is the token from the previous page.
	Continue string
}

// Page is an answer.
type Page struct {
	Names           []string
	ResourceVersion string
	// Continue is the token for the next page; "" if this is the last one.
	Continue string
}

// Server answers requests for a page.
type Server interface {
	List(o Options) (Page, error)
}

// ListAll returns all objects as one page. It fetches them in pages of o.Limit. If the version expires before the last
// page, it fetches all objects at once.
func ListAll(s Server, o Options) (Page, error) {
	var all Page
	for {
		page, err := s.List(o)
		if errors.Is(err, kube.ErrGone) && o.Continue != "" {
			// The pages so far are useless. A list in one answer needs no history.
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
