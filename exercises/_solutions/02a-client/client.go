// Package client is a client that lists and watches.
package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Client lists and watches the objects at URL. It is a [kube.Server].
type Client struct {
	HTTP *http.Client
	URL  string
	// Limit is how many objects a page may have.
	Limit int
}

// get sends a request. The caller closes the body.
func (c *Client) get(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	var s kube.Status
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		return nil, err
	}
	return nil, s.Err()
}

// List fetches all objects, page by page. version is kube.AnyAge, kube.Newest or the oldest version that will do.
//
// Errors: kube.ErrGone if the server no longer has the version when a later page is fetched. With an error List returns
// no objects, because an incomplete list would look as if the others had been deleted.
func (c *Client) List(ctx context.Context, version int) (kube.List, error) {
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	if version != kube.Newest {
		query.Set("resourceVersion", strconv.Itoa(version))
	}
	if version > 0 {
		query.Set("resourceVersionMatch", "NotOlderThan")
	}
	for all := (kube.List{}); ; {
		var page struct {
			Metadata struct {
				ResourceVersion int `json:",string"`
				Continue        string
			}
			Items []*kube.Object
		}
		body, err := c.get(ctx, query)
		if err != nil {
			return kube.List{}, err
		}
		err = json.NewDecoder(body).Decode(&page)
		body.Close()
		if err != nil {
			return kube.List{}, err
		}
		all.Objects = append(all.Objects, page.Items...)
		all.Version = page.Metadata.ResourceVersion
		if page.Metadata.Continue == "" {
			return all, nil
		}
		query = url.Values{"limit": query["limit"], "continue": {page.Metadata.Continue}}
	}
}

// Watch opens a stream of the changes after version. The server is asked to end it after the timeout.
func (c *Client) Watch(ctx context.Context, version int, timeout time.Duration) (kube.Watch, error) {
	body, err := c.get(ctx, url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {strconv.Itoa(version)},
		"timeoutSeconds": {strconv.Itoa(int(timeout.Seconds()))},
	})
	if err != nil {
		return nil, err
	}
	return &stream{body, json.NewDecoder(body)}, nil
}

var _ kube.Watch = (*stream)(nil)

// stream is an open watch.
type stream struct {
	body    io.Closer
	decoder *json.Decoder
}

// Next waits for the next event, which may be a bookmark.
func (s *stream) Next() (kube.Event, error) {
	var frame struct {
		Type   string
		Object json.RawMessage
	}
	if err := s.decoder.Decode(&frame); err != nil {
		return kube.Event{}, err
	}
	if frame.Type == "ERROR" {
		var status kube.Status
		if err := json.Unmarshal(frame.Object, &status); err != nil {
			return kube.Event{}, err
		}
		return kube.Event{}, status.Err()
	}
	event := kube.Event{Type: frame.Type, Object: &kube.Object{}}
	return event, json.Unmarshal(frame.Object, event.Object)
}

// Close ends the watch.
func (s *stream) Close() { s.body.Close() }
