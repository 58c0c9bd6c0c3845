// Package groupclient makes clients of single built-in resources, and of discovery. Their requests are those of
// client-go's typed clientset: the same paths, content types and retries. The clientset itself would link the clients
// of all API groups and the apply configurations of all their types, which is a tenth of the time that it takes to
// build a program.
package groupclient

import (
	"cmp"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// New returns a REST client of one group and version, which client-go's scheme must know.
//
// Source: client-go v0.37.2 kubernetes/typed, NewForConfig.
func New(config *rest.Config, version schema.GroupVersion) (rest.Interface, error) {
	own := rest.CopyConfig(config)
	own.GroupVersion, own.APIPath = &version, "/apis"
	if version.Group == "" {
		own.APIPath = "/api"
	}
	own.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()
	own.UserAgent = cmp.Or(own.UserAgent, rest.DefaultKubernetesUserAgent())
	return rest.RESTClientFor(own)
}

// Discovery returns a client of the server's discovery, like that of the clientset: it has no timeout but the config's.
// The constructor of package discovery would add one of 32 s.
func Discovery(config *rest.Config) (*discovery.DiscoveryClient, error) {
	connection, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return discovery.NewDiscoveryClientForConfigAndClient(config, connection)
}

// Resource returns a client of one resource in a namespace. c is a client of the resource's group and version. The
// namespace is empty if the resource is cluster-scoped.
func Resource[T interface {
	runtime.Object
	metav1.Object
}](c rest.Interface, resource, namespace string) *gentype.Client[T] {
	element := reflect.TypeFor[T]().Elem()
	return gentype.NewClient(resource, c, scheme.ParameterCodec, namespace,
		func() T { return reflect.New(element).Interface().(T) }, gentype.PrefersProtobuf[T]())
}
