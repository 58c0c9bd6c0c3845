// Package chapter02 has the programs of the chapter about list and watch: a client of nothing but net/http and
// encoding/json, and a copy of the server's objects that is kept in three ways.
package chapter02

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// A client lists and watches one resource.
type client struct {
	http *http.Client
	url  string // http://host/api/v1/namespaces/default/pods, for example
}

// meta is the metadata of an object or of a list, as far as the chapter needs it.
type meta struct {
	Name            string            `json:"name"`
	ResourceVersion string            `json:"resourceVersion"`
	Continue        string            `json:"continue"`
	Annotations     map[string]string `json:"annotations"`
}

// An object is one object, a list of objects, or the status that stands for an error.
type object struct {
	Metadata meta     `json:"metadata"`
	Items    []object `json:"items"`

	Code    int    `json:"code"`
	Message string `json:"message"`
}

// An event is one line of a watch.
type event struct {
	Type   string `json:"type"` // ADDED, MODIFIED, DELETED, BOOKMARK or ERROR
	Object object `json:"object"`
}

// errGone is the answer 410: the server does not have that much history any more.
var errGone = errors.New("410 Gone")

// errorOf returns the error that a status stands for.
func errorOf(status object) error {
	if status.Code == http.StatusGone {
		return errGone
	}
	return fmt.Errorf("%d %s", status.Code, status.Message)
}

// get sends a request and returns the body of the answer.
func (c client) get(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	var status object
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
		return nil, fmt.Errorf("read the answer %s: %w", answer.Status, err)
	}
	return nil, errorOf(status)
}

// list fetches one page.
func (c client) list(ctx context.Context, query url.Values) (page object, err error) {
	body, err := c.get(ctx, query)
	if err != nil {
		return page, err
	}
	defer body.Close()
	return page, json.NewDecoder(body).Decode(&page)
}

// watch calls each with every event, until the stream ends. It returns nil if the server ended it in good order.
func (c client) watch(ctx context.Context, query url.Values, each func(event)) error {
	query.Set("watch", "true")
	body, err := c.get(ctx, query)
	if err != nil {
		return err
	}
	defer body.Close()
	for frames := json.NewDecoder(body); ; {
		var e event
		switch err := frames.Decode(&e); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case e.Type == "ERROR":
			return errorOf(e.Object)
		}
		each(e)
	}
}
