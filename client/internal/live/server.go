package live

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/ownwrites"
	"github.com/flyball-dev/flyball/internal/redirect"
)

// Server is an API server, as the user of one config sees it.
type Server struct {
	REST   rest.Interface
	Scheme *runtime.Scheme
	Mapper *Mapper
	// Record notes what is written.
	Record *ownwrites.Record
	// protobuf says that objects go out and come back as protobuf where that is known of their kind. All others are
	// JSON.
	protobuf bool
}

// New returns the server that config leads to. Its record is the one that config has, if that is not connected to
// other informers, or else a new one. A nil mapper asks the server.
func New(config *rest.Config, scheme *runtime.Scheme, mapper meta.RESTMapper,
	informers *informer.Factory,
) (*Server, error) {
	client, record, err := connect(config, nil, informers)
	if err != nil {
		return nil, err
	}
	return &Server{
		REST: client, Scheme: scheme, Record: record, protobuf: wantsProtobuf(config),
		Mapper: &Mapper{
			given: mapper, client: client, known: map[schema.GroupVersionKind]Resource{},
			asking: map[schema.GroupVersion]*question{},
		},
	}, nil
}

// Through returns the same server, with the same record, as the user of another config sees it.
func (s *Server) Through(config *rest.Config) (*Server, error) {
	client, _, err := connect(config, s.Record, nil)
	if err != nil {
		return nil, err
	}
	through := *s
	through.REST, through.protobuf = client, wantsProtobuf(config)
	return &through, nil
}

// wantsProtobuf reports whether objects are protobuf where that is known of their kind: unless config asks for another
// content type, as in client-go's clientsets.
//
// Source: k8s.io/client-go v0.37.2 rest/request.go UseProtobufAsDefault.
func wantsProtobuf(config *rest.Config) bool {
	return config.ContentType == kinds.Protobuf || config.ContentType == "" && config.AcceptContentTypes == ""
}

// answers decodes what the REST client itself reads: the server's errors. It never changes, and takes much of a
// client's memory.
var answers = sync.OnceValue(func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).WithoutConversion()
})

// connect makes a client whose writes record notes; if that is nil, the record that config has, or a new one. It asks
// for JSON where a request does not say otherwise, whatever others are asked for with this config.
func connect(config *rest.Config, record *ownwrites.Record,
	informers *informer.Factory,
) (rest.Interface, *ownwrites.Record, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = kinds.JSON, kinds.JSON
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.NegotiatedSerializer = answers()
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
	has := ownwrites.Find(own.Transport)
	if record == nil && has != nil && (informers == nil || has.Connect(ownwrites.Peer{Caches: informers})) {
		record = has
	}
	if record == nil {
		if record, err = ownwrites.New(config); err != nil {
			return nil, nil, err
		}
	}
	if record != has {
		own.Transport = record.Wrap(own.Transport)
	}
	client, err := rest.RESTClientForConfigAndClient(config, &own)
	return client, record, err
}
