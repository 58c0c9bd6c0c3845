// Package client is task 02a: a client that lists and watches.
//
// The server speaks as an API server does. These are its requests:
//
//	GET URL?limit=2                        a page of the newest list
//	GET URL?limit=2&resourceVersion=0      a page of a list of any age
//	GET URL?limit=2&resourceVersion=9&resourceVersionMatch=NotOlderThan
//	                                       a page of a list that is not older than version 9
//	GET URL?limit=2&continue=TOKEN         the next page; it must not have a resourceVersion
//	GET URL?watch=true&allowWatchBookmarks=true&resourceVersion=12&timeoutSeconds=60
//	                                       the changes after version 12, one JSON object after the other
//
// The answer to a list is {"metadata": {"resourceVersion": "12", "continue": "TOKEN"}, "items": [OBJECT, ...]}; the
// last page has no token. An event is {"type": "ADDED", "object": OBJECT}. An error has a status other than 200 and the
// body {"code": 410, "message": "..."}. A watch has sent the status 200 before an error occurs, so there the error is
// an event of type ERROR with that body as its object.
//
// [kube.Object] and [kube.Status] have methods that read their JSON. A version is a number in a JSON string: the tag
// `json:",string"` reads it into an int.
//
// Begin with a function that sends a request and turns a status other than 200 into an error, because List and Watch
// both need it. A [json.Decoder] reads one value after the other from a stream.
package client

import (
	"context"
	"net/http"
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

// List fetches all objects, page by page. version is kube.AnyAge, kube.Newest or the oldest version that will do.
//
// Errors: kube.ErrGone if the server no longer has the version when a later page is fetched. With an error List returns
// no objects, because an incomplete list would look as if the others had been deleted.
func (c *Client) List(ctx context.Context, version int) (kube.List, error) {
	panic("not written yet: List")
}

// Watch opens a stream of the changes after version. The server is asked to end it after the timeout.
func (c *Client) Watch(ctx context.Context, version int, timeout time.Duration) (kube.Watch, error) {
	panic("not written yet: Watch")
}

var _ kube.Watch = (*stream)(nil)

// stream is an open watch. Add the fields that you need.
type stream struct{}

// Next waits for the next event, which may be a bookmark.
//
// Errors: io.EOF if the server ended the watch; that of a [kube.Status] if it sent an error, such as kube.ErrGone;
// [io.ErrUnexpectedEOF] if the connection broke in the middle of an event.
func (s *stream) Next() (kube.Event, error) {
	panic("not written yet: Next")
}

// Close ends the watch.
func (s *stream) Close() {
	panic("not written yet: Close")
}
