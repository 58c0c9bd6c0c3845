package github

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
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

// File is a [Client] that reads a YAML file, again for every call:
//
//	org/repo:
//	  heads/main: 0a1b2c…
type File string

// GetRef implements [Client].
func (f File) GetRef(_ context.Context, org, repo, ref string) (string, error) {
	text, err := os.ReadFile(string(f))
	if err != nil {
		return "", fmt.Errorf("read references: %w", err)
	}
	var repos map[string]map[string]string
	if err := yaml.Unmarshal(text, &repos); err != nil {
		return "", fmt.Errorf("read references from %s: %w", string(f), err)
	}
	refs := repos[org+"/"+repo]
	if sha, found := refs[ref]; found {
		return sha, nil
	}
	similar := func(name string) bool { return strings.HasPrefix(name, ref) }
	if slices.ContainsFunc(slices.Collect(maps.Keys(refs)), similar) {
		return "", fmt.Errorf("%s of %s/%s: %w", ref, org, repo, ErrTooManyRefs)
	}
	return "", fmt.Errorf("%s of %s/%s: %w", ref, org, repo, ErrNotFound)
}

// maxAnswer bounds how much of an answer is read.
const maxAnswer = 1 << 20

// HTTPOptions configure [NewHTTP]. The zero value means GitHub, without a token.
type HTTPOptions struct {
	// Endpoint is the API's address. Empty means https://api.github.com.
	Endpoint string
	// TokenFile holds a token. It is read for every request, so that the token may be renewed. Empty sends no token.
	TokenFile string
	// Timeout bounds one request. Zero means 30 s.
	Timeout time.Duration
	// Transport sends the requests. Nil means Go's default.
	Transport http.RoundTripper
}

type client struct {
	o    HTTPOptions
	http *http.Client
}

// NewHTTP returns a [Client] of GitHub's API. It sends no request before the first call.
//
// Errors: an endpoint that is not a URL.
//
// Source: https://docs.github.com/en/rest/git/refs; for a prefix of several references GitHub has answered with a list.
func NewHTTP(o HTTPOptions) (Client, error) {
	o.Endpoint = cmp.Or(o.Endpoint, "https://api.github.com")
	if u, err := url.Parse(o.Endpoint); err != nil || u.Host == "" {
		return nil, fmt.Errorf("GitHub endpoint %q: want an address such as https://api.github.com", o.Endpoint)
	}
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	return &client{o, &http.Client{Transport: o.Transport, Timeout: o.Timeout}}, nil
}

// GetRef implements [Client].
func (c *client) GetRef(ctx context.Context, org, repo, ref string) (string, error) {
	request, err := c.request(ctx, org, repo, ref)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask for %s of %s/%s: %w", ref, org, repo, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the answer about %s of %s/%s: %w", ref, org, repo, err)
	case response.StatusCode == http.StatusNotFound:
		return "", fmt.Errorf("%s of %s/%s: %w", ref, org, repo, ErrNotFound)
	case response.StatusCode != http.StatusOK:
		return "", fmt.Errorf("ask for %s of %s/%s: %s", ref, org, repo, response.Status)
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")):
		return "", fmt.Errorf("%s of %s/%s: %w", ref, org, repo, ErrTooManyRefs)
	}
	var answer struct {
		Object struct {
			SHA string `json:"sha"`
		} `json:"object"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return "", fmt.Errorf("read the answer about %s of %s/%s: %w", ref, org, repo, err)
	}
	if answer.Object.SHA == "" {
		return "", fmt.Errorf("%s of %s/%s: the answer names no commit", ref, org, repo)
	}
	return answer.Object.SHA, nil
}

func (c *client) request(ctx context.Context, org, repo, ref string) (*http.Request, error) {
	address := fmt.Sprintf("%s/repos/%s/%s/git/refs/%s", strings.TrimSuffix(c.o.Endpoint, "/"), url.PathEscape(org),
		url.PathEscape(repo), ref)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for %s of %s/%s: %w", ref, org, repo, err)
	}
	request.Header.Set("Accept", "application/vnd.github+json")
	if c.o.TokenFile != "" {
		token, err := os.ReadFile(c.o.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("read GitHub token: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+string(bytes.TrimSpace(token)))
	}
	return request, nil
}
