package live

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/redirect"
	"github.com/flyball-dev/flyball/internal/wire"
	"github.com/flyball-dev/flyball/writes"
)

// Server sends requests to one API server as the user of one config.
type Server struct {
	REST   rest.Interface
	Scheme *runtime.Scheme
	Mapper *Mapper
	// Record has the writes that were sent, those of [Server.Through] included.
	Record *writes.Record
	// Protobuf reports whether built-in objects are sent and asked for as protobuf. All others are JSON.
	Protobuf bool
}

// New returns the server of config. It uses the record that config carries. If that record is connected to other
// informers, or config carries none, it makes a new record. A nil mapper means discovery.
func New(config *rest.Config, scheme *runtime.Scheme, mapper meta.RESTMapper,
	informers *informer.Factory,
) (*Server, error) {
	client, record, err := connect(config, nil, informers)
	if err != nil {
		return nil, err
	}
	return &Server{
		REST: client, Scheme: scheme, Record: record, Protobuf: wantsProtobuf(config),
		Mapper: &Mapper{
			given: mapper, client: client, known: map[schema.GroupVersionKind]Resource{},
			requests: map[schema.GroupVersion]*discovery{},
		},
	}, nil
}

// Through returns a server that sends as the user of another config. It shares the record and the mapper of s.
func (s *Server) Through(config *rest.Config) (*Server, error) {
	client, _, err := connect(config, s.Record, nil)
	if err != nil {
		return nil, err
	}
	through := *s
	through.REST, through.Protobuf = client, wantsProtobuf(config)
	return &through, nil
}

// wantsProtobuf reports whether built-in objects are protobuf: as in client-go's clientsets, unless config asks for
// another content type.
//
// Source: k8s.io/client-go v0.37.2 rest/request.go UseProtobufAsDefault.
func wantsProtobuf(config *rest.Config) bool {
	return config.ContentType == kinds.Protobuf || config.ContentType == "" && config.AcceptContentTypes == ""
}

// connect returns a client whose writes go into record. A nil record means the one that config carries, or a new one.
// Requests without an Accept header ask for JSON, whatever content type config has.
func connect(config *rest.Config, record *writes.Record,
	informers *informer.Factory,
) (rest.Interface, *writes.Record, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = kinds.JSON, kinds.JSON
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = wire.ErrorCodecs()
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	config.Wrap(redirect.Refuse)
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	own := *shared
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	carried := writes.Of(own.Transport)
	if record == nil && carried != nil && (informers == nil || carried.Connect(informers, nil, 0)) {
		record = carried
	}
	if record == nil {
		if record, err = writes.New(config); err != nil {
			return nil, nil, err
		}
	}
	if record != carried {
		own.Transport = record.Wrap(own.Transport)
	}
	client, err := rest.RESTClientForConfigAndClient(config, &own)
	return client, record, err
}
