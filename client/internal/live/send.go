package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/wire"
	"github.com/flyball-dev/flyball/writes"
)

// Exchange sends r and replaces obj, which is of kind k, by the object in the answer. It leaves obj as it is if the
// answer is of another kind, such as the Status that answers an eviction.
//
// Errors: those of [Server.Send]; an answer that is not an object, although the server reports success.
func (s *Server) Exchange(ctx context.Context, r Request, k kinds.Kind, obj informer.Object) error {
	r.Accept = kinds.Accept(obj, s.Protobuf)
	// The record of own writes sees the answer first, in the transport. It calls Decode, which keeps the object here
	// too, so that the answer is decoded once.
	var decoded informer.Object
	intent := writes.Intent{
		Name: r.Key.Name, Kind: k.GVK,
		Decode: func(contentType string, data []byte) (_ metav1.Object, err error) {
			decoded, err = k.Decode(s.Scheme, contentType, data)
			return decoded, err
		},
	}
	contentType, data, err := s.Send(writes.WithIntent(ctx, &intent), r)
	if err != nil {
		return err
	}
	if decoded == nil {
		if kind := wire.Identify(contentType, data).Kind; kind != "" && kind != k.GVK.Kind {
			return nil
		}
		if decoded, err = k.Decode(s.Scheme, contentType, data); err != nil {
			return err
		}
	}
	kinds.Set(obj, decoded)
	return nil
}

// Send sends r and returns the body of a success and its content type. All requests of a client pass here. The
// transport below records the writes.
func (s *Server) Send(ctx context.Context, r Request) (contentType string, body []byte, err error) {
	resource, err := s.ResourceOf(ctx, r.GVK)
	if err != nil {
		return "", nil, err
	}
	if err := r.resolve(resource); err != nil {
		return "", nil, err
	}
	if r.Verb != http.MethodGet && ctx.Err() != nil {
		return "", nil, context.Cause(ctx)
	}
	for attempt := 0; ; attempt++ {
		if contentType, body, err = s.connection.do(ctx, &r); !repeat(ctx, err, attempt) {
			return contentType, body, err
		}
	}
}

// maxThrottled is how often a request is repeated because the server is too busy. maxPause bounds the pause before a
// repetition, whatever the server asks for.
const (
	maxThrottled = 10
	maxPause     = 5 * time.Minute
)

// Resource is the resource of a kind.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
}

// ResourceOf returns the resource of a kind, as [informer.Factory.ResourceOf] does.
func (s *Server) ResourceOf(ctx context.Context, kind schema.GroupVersionKind) (r Resource, err error) {
	for attempt := 0; ; attempt++ {
		r.GroupVersionResource, r.Namespaced, err = s.kinds.ResourceOf(ctx, kind)
		if !repeat(ctx, err, attempt) {
			return r, err
		}
	}
}

// repeat reports whether to send a request again because the server is too busy (429), after the pause that the server
// asks for: such a request was not applied.
func repeat(ctx context.Context, err error, attempt int) bool {
	if err == nil { // The usual case, which should not allocate.
		return false
	}
	wait, tooBusy := apierrors.SuggestsClientDelay(err)
	if !tooBusy || !apierrors.IsTooManyRequests(err) || attempt == maxThrottled {
		return false
	}
	pause := time.NewTimer(min(time.Duration(wait)*time.Second, maxPause))
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// do sends r and returns the body of a success and its content type. Errors: those of rest.Request.Do.
func (c *connection) do(ctx context.Context, r *Request) (contentType string, body []byte, err error) {
	begun := time.Now()
	defer func() { metrics.RequestLatency.Observe(ctx, r.Verb, c.template(r), time.Since(begun)) }()
	if err := c.throttle(ctx, r); err != nil {
		return "", nil, err
	}
	if c.client.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, c.client.Timeout)
		defer stop()
	}
	if err := ctx.Err(); err != nil {
		return "", nil, err
	}
	logBody(ctx, "Request Body", r.Body)
	response, err := c.roundTrip(ctx, r)
	metrics.RequestSize.Observe(ctx, r.Verb, c.base.Host, float64(len(r.Body)))
	if err != nil {
		metrics.RequestResult.Increment(ctx, "<error>", r.Verb, c.base.Host)
		return "", nil, err
	}
	metrics.RequestResult.Increment(ctx, strconv.Itoa(response.StatusCode), r.Verb, c.base.Host)
	return c.answer(ctx, r, response)
}

// roundTrip sends r without the client, which would clone the headers of each request in case of a redirect. A redirect
// means that r was not applied, so the client may send r again and follow it.
func (c *connection) roundTrip(ctx context.Context, r *Request) (*http.Response, error) {
	request := c.request(ctx, r)
	response, err := c.client.Transport.RoundTrip(request)
	switch {
	case err != nil:
		method := request.Method[:1] + strings.ToLower(request.Method[1:])
		return nil, &url.Error{Op: method, URL: request.URL.String(), Err: err}
	case response.StatusCode/100 == 3 && response.Header.Get("Location") != "":
		if response.Body != nil {
			_ = response.Body.Close()
		}
		return c.client.Do(c.request(ctx, r))
	case response.Body == nil:
		response.Body = http.NoBody
	}
	return response, nil
}

// request returns r as an HTTP request. Its header is a map of its own, because many wrappers of transports change it.
func (c *connection) request(ctx context.Context, r *Request) *http.Request {
	u := c.base
	u.Path += r.path(r.namespace, r.name())
	if u.RawQuery = r.Params.Encode(); c.client.Timeout > 0 {
		timeout := "timeout=" + url.QueryEscape(c.client.Timeout.String())
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+timeout, "&")
	}
	values := [3]string{cmp.Or(r.Accept, kinds.JSON), c.userAgent, r.ContentType}
	header := http.Header{"Accept": values[0:1:1], "User-Agent": values[1:2:2]}
	if r.ContentType != "" {
		header["Content-Type"] = values[2:3:3]
	}
	request := http.Request{
		Method: r.Verb, URL: &u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
	}
	if len(r.Body) > 0 {
		request.GetBody = func() (io.ReadCloser, error) { return wire.NewBody(r.Body), nil }
		request.Body, request.ContentLength = wire.NewBody(r.Body), int64(len(r.Body))
	}
	return request.WithContext(ctx)
}

// slow logs long waits for the rate limiter, as often as client-go does.
var slow = rate.Sometimes{Interval: 10 * time.Second}

// throttle waits for the rate limiter.
func (c *connection) throttle(ctx context.Context, r *Request) error {
	if c.limiter == nil {
		return nil
	}
	begun := time.Now()
	err := c.limiter.Wait(ctx)
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("client rate limiter Wait returned an error: %w", err)
	}
	waited := time.Since(begun)
	if waited > time.Second {
		slow.Do(func() {
			klog.FromContext(ctx).Info("Waited for the client's rate limiter before sending a request", "delay", waited,
				"verb", r.Verb, "path", r.path(r.namespace, r.name()))
		})
	}
	metrics.RateLimiterLatency.Observe(ctx, r.Verb, c.template(r), waited)
	return err
}

// template returns the URL of a request with placeholders for names and parameters, for the metrics.
func (c *connection) template(r *Request) url.URL {
	u := c.base
	namespace, name := r.namespace, r.name()
	if namespace != "" {
		namespace = "{namespace}"
	}
	if name != "" {
		name = "{name}"
	}
	u.Path += r.path(namespace, name)
	if len(r.Params) > 0 {
		params := make(url.Values, len(r.Params))
		for name := range r.Params {
			params.Set(name, "{value}")
		}
		u.RawQuery = params.Encode()
	}
	return u
}

// answer reads the answer to r.
func (c *connection) answer(ctx context.Context, r *Request, response *http.Response,
) (contentType string, body []byte, err error) {
	body, err = wire.ReadBody(response)
	_ = response.Body.Close()
	if err != nil {
		if strings.HasPrefix(err.Error(), "stream error: ") { // HTTP/2
			return "", nil, fmt.Errorf("stream error when reading response body, may be caused by closed connection. "+
				"Please retry. Original error: %w", err)
		}
		klog.FromContext(ctx).Error(err, "Unexpected error when reading response body")
		return "", nil, fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", err)
	}
	metrics.ResponseSize.Observe(ctx, r.Verb, c.base.Host, float64(len(body)))
	logBody(ctx, "Response Body", body)
	if given := response.Header["Warning"]; len(given) > 0 {
		warnings, _ := utilnet.ParseWarningHeaders(given)
		for _, w := range warnings {
			c.warnings.HandleWarningHeaderWithContext(ctx, w.Code, w.Agent, w.Text)
		}
	}
	contentType = cmp.Or(response.Header.Get("Content-Type"), kinds.JSON)
	media := contentType
	if media != kinds.JSON && media != kinds.Protobuf {
		if media, _, err = mime.ParseMediaType(contentType); err != nil {
			return "", nil, apierrors.NewInternalError(err)
		}
	}
	if code := response.StatusCode; code >= http.StatusOK && code <= http.StatusPartialContent {
		return contentType, body, nil
	}
	return "", nil, r.failure(response, media, body)
}

// maxMessage bounds the text of an answer without a Status in an error, in bytes.
const maxMessage = 2048

// failure returns the error of an answer that is no success: its Status, or an error that names the object and has the
// text of the answer.
func (r *Request) failure(response *http.Response, media string, body []byte) error {
	if status := wire.StatusOf(media, body); status != nil {
		return apierrors.FromObject(status)
	}
	text := "unknown"
	if response.Header.Get("Content-Type") == "" || strings.HasPrefix(media, "text/") {
		text = strings.TrimSpace(string(body[:min(len(body), maxMessage)]))
	}
	wait, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return apierrors.NewGenericServerResponse(response.StatusCode, r.Verb, r.resource.GroupResource(), r.name(), text,
		wait, true)
}

// logBody logs a body at level 8, at most its first 10 KiB.
func logBody(ctx context.Context, what string, body []byte) {
	if !klog.V(8).Enabled() { // Before the logger of ctx is made.
		return
	}
	text := body[:min(len(body), 10<<10)]
	if bytes.ContainsFunc(text, func(r rune) bool { return r < '\t' }) {
		klog.FromContext(ctx).V(8).Info(what, "bytes", len(body), "body", fmt.Sprintf("%q", text))
		return
	}
	klog.FromContext(ctx).V(8).Info(what, "bytes", len(body), "body", string(text))
}
