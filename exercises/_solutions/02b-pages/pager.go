// Package pages lists in pages.
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
	asked := o.ResourceVersion
	for {
		page, err := s.List(o)
		if errors.Is(err, kube.ErrGone) && o.Continue != "" {
			// The pages so far are useless. A list in one answer needs no history.
			o.Continue, o.Limit, o.ResourceVersion = "", 0, asked
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
		o.Continue, o.ResourceVersion = page.Continue, "" // The token contains the version.
	}
}
