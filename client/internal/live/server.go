package live

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/redirect"
	"github.com/flyball-dev/flyball/internal/wire"
	"github.com/flyball-dev/flyball/writes"
)

// Server sends requests to one API server as the user of one config.
type Server struct {
	// REST is for package writes, which asks the server about writes whose answers were lost.
	REST   rest.Interface
	Scheme *runtime.Scheme
	// kinds knows the resources of kinds: the informers do, unless the client has a mapper of its own.
	kinds *informer.Factory
	// Record has the writes that were sent, those of [Server.Through] included.
	Record *writes.Record
	// Protobuf reports whether built-in objects are sent and asked for as protobuf. All others are JSON.
	Protobuf bool

	connection *connection
}

// New returns the server of config. It uses the record that config carries. If that record is connected to other
// informers, or config carries none, it makes a new record. A nil mapper means that of the informers, or discovery.
func New(config *rest.Config, scheme *runtime.Scheme, mapper meta.RESTMapper,
	informers *informer.Factory,
) (*Server, error) {
	s := &Server{Scheme: scheme}
	if err := s.connect(config, informers); err != nil {
		return nil, err
	}
	if s.kinds = informers; informers == nil || mapper != nil {
		var err error
		if s.kinds, err = informer.NewFactory(config, informer.FactoryOptions{Mapper: mapper}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Through returns a server that sends as the user of another config. It shares the record of s, and what s knows about
// kinds.
func (s *Server) Through(config *rest.Config) (*Server, error) {
	through := *s
	if err := through.connect(config, nil); err != nil {
		return nil, err
	}
	return &through, nil
}

// wantsProtobuf reports whether built-in objects are protobuf: as in client-go's clientsets, unless config asks for
// another content type.
//
// Source: k8s.io/client-go v0.37.2 rest/request.go UseProtobufAsDefault.
func wantsProtobuf(config *rest.Config) bool {
	return config.ContentType == kinds.Protobuf || config.ContentType == "" && config.AcceptContentTypes == ""
}

// connect connects s to the server of config. If s has no record of writes, it gets the one that config carries, or a
// new one. Requests without an Accept header ask for JSON, whatever content type config has.
func (s *Server) connect(config *rest.Config, informers *informer.Factory) error {
	s.Protobuf = wantsProtobuf(config)
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = kinds.JSON, kinds.JSON
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = wire.ErrorCodecs()
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	config.Wrap(redirect.Refuse)
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	own := *shared
	own.Transport = cmp.Or(own.Transport, http.DefaultTransport)
	carried := writes.Of(own.Transport)
	if s.Record == nil && carried != nil && (informers == nil || carried.Connect(informers, nil, 0)) {
		s.Record = carried
	}
	if s.Record == nil {
		if s.Record, err = writes.New(config); err != nil {
			return err
		}
	}
	if s.Record != carried {
		own.Transport = s.Record.Wrap(own.Transport)
	}
	client, err := rest.RESTClientForConfigAndClient(config, &own)
	if err != nil {
		return err
	}
	s.REST = client
	s.connection, err = newConnection(config, &own, client.GetRateLimiter())
	return err
}

// connection sends requests to one API server. It does what client-go's rest.Request does, with the same errors,
// but builds the URL and the headers of a request once rather than for each step (docs/decisions/0024-write-path.md).
//
// Source: k8s.io/client-go v0.37.2 rest/request.go.
type connection struct {
	// base is the address of the server. Its path has no slash at the end.
	base url.URL
	// client authenticates and has the wrappers and the timeout of the config.
	client    *http.Client
	limiter   flowcontrol.RateLimiter // Nil means no limit.
	warnings  rest.WarningHandlerWithContext
	userAgent string
}

func newConnection(config *rest.Config, client *http.Client, limiter flowcontrol.RateLimiter) (*connection, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	c := &connection{
		base: url.URL{Scheme: base.Scheme, Host: base.Host, Path: strings.TrimSuffix(base.Path, "/")}, client: client,
		limiter: limiter, warnings: config.WarningHandlerWithContext, userAgent: config.UserAgent,
	}
	if c.warnings == nil {
		c.warnings = withoutContext{rest.WarningLogger{}}
		if config.WarningHandler != nil {
			c.warnings = withoutContext{config.WarningHandler}
		}
	}
	return c, nil
}

// withoutContext is a warning handler that does not need the context.
type withoutContext struct{ rest.WarningHandler }

// HandleWarningHeaderWithContext implements [rest.WarningHandlerWithContext].
func (w withoutContext) HandleWarningHeaderWithContext(_ context.Context, code int, agent, text string) {
	w.HandleWarningHeader(code, agent, text)
}
