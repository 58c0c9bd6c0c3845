// Package client is a client that lists and watches.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// ErrGone is the answer 410: the server no longer has the history since that version.
var ErrGone = errors.New("410 Gone")

// Object has the parts of an object that this task needs.
type Object struct {
	Metadata Metadata `json:"metadata"`
}

// Metadata is the part that all objects have.
type Metadata struct {
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion"`
}

// Event is a change of an object: ADDED, MODIFIED or DELETED.
type Event struct {
	Type   string `json:"type"`
	Object Object `json:"object"`
}

// Client lists and watches the objects at URL.
type Client struct {
	HTTP *http.Client
	URL  string
}

// status is the body of an error.
type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (s status) err() error {
	if s.Code == http.StatusGone {
		return ErrGone
	}
	return fmt.Errorf("%d: %s", s.Code, s.Message)
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
	var s status
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		return nil, err
	}
	return nil, s.err()
}

// List fetches all objects, in pages of at most limit. It returns them and the version of the list.
func (c *Client) List(ctx context.Context, limit int) (objects []Object, version string, err error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	for {
		var page struct {
			Metadata struct{ ResourceVersion, Continue string }
			Items    []Object
		}
		body, err := c.get(ctx, query)
		if err != nil {
			return nil, "", err
		}
		err = json.NewDecoder(body).Decode(&page)
		body.Close()
		if err != nil {
			return nil, "", err
		}
		objects = append(objects, page.Items...)
		if page.Metadata.Continue == "" {
			return objects, page.Metadata.ResourceVersion, nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

// Watch calls each with the changes after version, until the watch ends, and returns the position.
func (c *Client) Watch(ctx context.Context, version string, each func(Event)) (position string, err error) {
	position = version
	body, err := c.get(ctx, url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version},
	})
	if err != nil {
		return position, err
	}
	defer body.Close()
	for decoder := json.NewDecoder(body); ; {
		var frame struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&frame); errors.Is(err, io.EOF) {
			return position, nil
		} else if err != nil {
			return position, err
		}
		if frame.Type == "ERROR" {
			var s status
			if err := json.Unmarshal(frame.Object, &s); err != nil {
				return position, err
			}
			return position, s.err()
		}
		event := Event{Type: frame.Type}
		if err := json.Unmarshal(frame.Object, &event.Object); err != nil {
			return position, err
		}
		if event.Type != "BOOKMARK" {
			each(event)
		}
		position = event.Object.Metadata.ResourceVersion
	}
}
