package live

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/inspect"
)

// Trace prints what happened to an object.
type Trace struct {
	Client *Client
	// Object names the object. Its Resource may be a kind, a singular or a short name.
	Object inspect.Ref
	// AnyNamespace looks for the name elsewhere if there is nothing in the object's namespace.
	AnyNamespace bool
	// Follow goes on with what happens from then on, until the context is done.
	Follow bool
	// JSON prints the timeline as JSON; with Follow, one step a line.
	JSON bool
	Out  io.Writer
}

// period is the time between two questions of one who follows.
const period = time.Second

// Run prints the timeline.
//
// Errors: there is no answer; the server does not know the resource.
func (t *Trace) Run(ctx context.Context) error {
	timeline, err := t.find(ctx)
	if err != nil {
		return err
	}
	if !t.Follow {
		return t.print(timeline)
	}
	var f follower
	for first := true; ; first = false {
		if !first {
			select {
			case <-time.After(period):
			case <-ctx.Done():
				return nil
			}
			if timeline, err = t.read(ctx, timeline.Object); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
		if news := f.news(timeline); first || len(news.Steps) > 0 {
			if err := t.add(news, first); err != nil {
				return err
			}
		}
	}
}

func (t *Trace) read(ctx context.Context, object inspect.Ref) (inspect.Timeline, error) {
	var timeline inspect.Timeline
	query := url.Values{"resource": {object.Resource}, "namespace": {object.Namespace}, "name": {object.Name}}
	err := t.Client.get(ctx, "object", query, &timeline)
	return timeline, err
}

// find reads the timeline of the object, in whatever namespace it is if it may.
func (t *Trace) find(ctx context.Context) (inspect.Timeline, error) {
	timeline, err := t.read(ctx, t.Object)
	if err != nil || len(timeline.Steps) > 0 || !t.AnyNamespace {
		return timeline, err
	}
	var found []inspect.Ref
	if err := t.Client.get(ctx, "objects", url.Values{"find": {t.Object.Name}}, &found); err != nil {
		return timeline, err
	}
	found = slices.DeleteFunc(found, func(r inspect.Ref) bool {
		return r.Resource != timeline.Object.Resource || r.Name != t.Object.Name
	})
	switch len(found) {
	case 0:
		return timeline, nil
	case 1:
		return t.read(ctx, found[0])
	}
	var namespaces []string
	for _, r := range found {
		namespaces = append(namespaces, r.Namespace)
	}
	return timeline, fmt.Errorf("%s %s is in several namespaces: give one of %s with -n", timeline.Object.Resource,
		t.Object.Name, strings.Join(slices.Sorted(slices.Values(namespaces)), ", "))
}

func (t *Trace) print(timeline inspect.Timeline) error {
	if !t.JSON {
		return timeline.WriteText(t.Out)
	}
	e := json.NewEncoder(t.Out)
	e.SetIndent("", "  ")
	return e.Encode(timeline)
}

// add prints the next steps of a timeline.
func (t *Trace) add(news inspect.Timeline, first bool) error {
	if t.JSON {
		e := json.NewEncoder(t.Out)
		for _, step := range news.Steps {
			if err := e.Encode(step); err != nil {
				return err
			}
		}
		return nil
	}
	var b strings.Builder
	if err := news.WriteText(&b); err != nil {
		return err
	}
	text := b.String()
	if !first {
		_, text, _ = strings.Cut(text, "\n") // the heading
	}
	_, err := io.WriteString(t.Out, text)
	return err
}

// follower tells the steps that are new from those that it has been shown.
type follower struct{ shown map[uint64]bool }

// news returns the timeline with the steps that were not shown yet. A reconcile is shown when it has ended.
func (f *follower) news(t inspect.Timeline) inspect.Timeline {
	shown := map[uint64]bool{}
	if f.shown != nil {
		t.Before = 0
	}
	var steps []inspect.Entry
	for _, s := range t.Steps {
		if s.Running {
			continue
		}
		if shown[s.Number] = true; !f.shown[s.Number] {
			steps = append(steps, s)
		}
	}
	t.Steps, f.shown = steps, shown
	return t
}

// DefaultAddress is where a manager is looked for unless the command line says otherwise.
const DefaultAddress = "127.0.0.1:6060"

// Client reads what a manager shows of itself.
type Client struct {
	// Address is host:port, with https:// before it if the server speaks TLS. Each of the other fields implies TLS.
	Address string
	// TokenFile holds the bearer token of a server that reviews tokens.
	TokenFile string
	// CAFile holds the authorities that the server's certificate must be of; empty means those of the system.
	CAFile string
	// SkipVerify accepts any certificate.
	SkipVerify bool

	base  *url.URL
	token string
	http  *http.Client
}

// AddFlags adds the flags of the fields.
func (c *Client) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Address, "address", DefaultAddress,
		"the manager's --inspect-address; https:// before it means TLS, and so do the following flags")
	fs.StringVar(&c.TokenFile, "token-file", "", "a file with the bearer token for a manager that asks for one")
	fs.StringVar(&c.CAFile, "certificate-authority", "", "a file with the authority of the manager's certificate")
	fs.BoolVar(&c.SkipVerify, "insecure-skip-tls-verify", false, "accept any certificate of the manager")
}

// Open checks the fields and reads the files. It sends nothing.
func (c *Client) Open() error {
	address := c.Address
	if !strings.Contains(address, "://") {
		scheme := "http://"
		if c.TokenFile != "" || c.CAFile != "" || c.SkipVerify {
			scheme = "https://"
		}
		address = scheme + address
	}
	var err error
	c.base, err = url.Parse(address)
	valid := err == nil && c.base.Hostname() != "" && (c.base.Scheme == "http" || c.base.Scheme == "https")
	if valid && (c.base.Port() != "" || address != c.Address) { // A URL may leave the port out.
		_, err = strconv.ParseUint(c.base.Port(), 10, 16)
	}
	if !valid || err != nil {
		return fmt.Errorf("--address %q: it must be host:port", c.Address)
	}
	if c.base.Scheme == "http" && c.TokenFile != "" {
		return errors.New("--token-file: the token would be sent without TLS; give --address with https://")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.SkipVerify}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return fmt.Errorf("--certificate-authority: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("--certificate-authority: %s has no certificate", c.CAFile)
		}
	}
	if c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
		c.token = strings.TrimSpace(string(text))
	}
	if c.http == nil {
		c.http = &http.Client{
			Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment},
			Timeout:   10 * time.Second,
			// A redirect leads to something else than an Inspector, such as a login.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// longestAnswer bounds an answer, in bytes.
const longestAnswer = 64 << 20

// get reads the answer of a path below /inspect/api/ into v.
func (c *Client) get(ctx context.Context, path string, query url.Values, v any) error {
	u := *c.base
	u.Path, u.RawQuery = "/inspect/api/"+path, query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return c.unreachable(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.base.Host, err)
	}
	isJSON := strings.HasPrefix(response.Header.Get("Content-Type"), "application/json")
	if response.StatusCode == http.StatusOK && isJSON {
		if err := json.Unmarshal(body, v); err != nil {
			return fmt.Errorf("the answer of %s is not an inspector's: %w", c.base.Host, err)
		}
		return nil
	}
	return c.refused(response, strings.TrimSpace(string(body)))
}

// unreachable explains why there is no answer.
func (c *Client) unreachable(err error) error {
	var unknown *tls.CertificateVerificationError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s; flyball manager --inspect-address=%[1]s, "+
			"flyball demo --page=%[1]s and flyball serve --page=%[1]s do, and any manager with Options.Inspect at its "+
			"DebugAddr", c.base.Host)
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of %s is not trusted: give --certificate-authority, or "+
			"--insecure-skip-tls-verify: %w", c.base.Host, unknown.Err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("%s does not speak TLS: leave https:// and the flags for TLS out", c.base.Host)
	}
	return err
}

// refused explains an answer that is none.
func (c *Client) refused(response *http.Response, text string) error {
	plain := strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain")
	switch code := response.StatusCode; {
	case strings.Contains(text, "HTTP request to an HTTPS server"):
		return fmt.Errorf("%s speaks TLS: give --certificate-authority or --insecure-skip-tls-verify, and "+
			"--token-file", c.base.Host)
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%s does not accept the token: give one with --token-file; kubectl create token makes one",
			c.base.Host)
	case code == http.StatusForbidden:
		return fmt.Errorf("the user of the token may not get /inspect/: a ClusterRole with nonResourceURLs /inspect/* "+
			"and the verb get permits it: %s", text)
	case code == http.StatusNotFound && plain && text != "404 page not found", code == http.StatusBadRequest && plain:
		return errors.New(text) // of the Inspector
	}
	return fmt.Errorf("%s is not the address of an inspector: it answers %s to %s", c.base.Host, response.Status,
		response.Request.URL.Path)
}
