package redirect

import (
	"fmt"
	"net/http"
)

// Refuse is a wrapper for the method Wrap of a rest.Config. It fails requests that a redirect would send to another
// scheme or host. It returns next if that, or a transport below, does so already: a client may be made from the config
// of a manager.
func Refuse(next http.RoundTripper) http.RoundTripper {
	for below := next; ; {
		if _, ok := below.(*transport); ok {
			return next
		}
		wrapper, ok := below.(interface{ WrappedRoundTripper() http.RoundTripper })
		if !ok {
			return &transport{next}
		}
		below = wrapper.WrappedRoundTripper()
	}
}

type transport struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response != nil && r.Response.Request != nil { // a redirect led here
		from := r.Response.Request.URL
		if from.Scheme != r.URL.Scheme || from.Host != r.URL.Host {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, fmt.Errorf("%s://%s redirects to %s://%s, where credentials are not sent: use that address if "+
				"it is the server's", from.Scheme, from.Host, r.URL.Scheme, r.URL.Host)
		}
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper lets others find the transports below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }
