package github

import (
	"context"
	"errors"
)

// Client tells where references are.
//
// Concurrency: from any goroutine.
type Client interface {
	// GetRef returns the commit that ref ("heads/main") of a repository is at.
	//
	// Errors: [ErrNotFound], [ErrTooManyRefs], which asking again does not mend; all others may pass.
	GetRef(ctx context.Context, org, repo, ref string) (sha string, err error)
}

var (
	// ErrNotFound says that there is no such repository or reference, or that it may not be seen.
	ErrNotFound = errors.New("reference not found")
	// ErrTooManyRefs says that there is none of exactly that name, but several that begin with it.
	ErrTooManyRefs = errors.New("query for the reference returned too many results")
)

// Permanent says that asking again would not help.
func Permanent(err error) bool { return errors.Is(err, ErrNotFound) || errors.Is(err, ErrTooManyRefs) }
