package github

import (
	"context"
	"errors"
)

// Client resolves references.
//
// Concurrency: all methods may be called from any goroutine.
type Client interface {
	// GetRef returns the commit that ref ("heads/main") of a repository is at.
	//
	// Errors: [ErrNotFound] and [ErrTooManyRefs] are permanent; all others may be temporary.
	GetRef(ctx context.Context, org, repo, ref string) (sha string, err error)
}

var (
	// ErrNotFound means that the repository or reference does not exist, or may not be seen.
	ErrNotFound = errors.New("reference not found")
	// ErrTooManyRefs means that no reference has exactly that name, but several begin with it.
	ErrTooManyRefs = errors.New("query for the reference returned too many results")
)

// Permanent reports whether a retry would not help.
func Permanent(err error) bool { return errors.Is(err, ErrNotFound) || errors.Is(err, ErrTooManyRefs) }
