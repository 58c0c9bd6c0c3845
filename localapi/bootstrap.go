package localapi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/builtin"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
)

// The objects that every cluster has are created when the server is made. A server made on storage that has them
// already leaves them as they are.

// bootstrap creates the namespaces that every cluster has, those asked for, and the Service of the API itself.
func (s *Server) bootstrap(o Options) error {
	if s.env.Namespaces != nil {
		names := append([]string{
			metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic,
			corev1.NamespaceNodeLease,
		}, o.Namespaces...)
		for _, name := range names {
			if err := s.createNamespace(name); err != nil {
				return err
			}
		}
	}
	for _, class := range builtin.SystemPriorityClasses() {
		if err := s.ensure("", class); err != nil {
			return err
		}
	}
	if o.RBAC {
		for _, obj := range defaultRoles() {
			if err := s.ensure("", obj); err != nil {
				return err
			}
		}
	}
	if o.NoKubernetesService {
		return nil
	}
	for _, obj := range kubernetesService() {
		if err := s.ensure(metav1.NamespaceDefault, obj); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) createNamespace(name string) error {
	return s.ensure("", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// ensure creates an object, unless it exists or its type is not served.
func (s *Server) ensure(namespace string, obj runtime.Object) error {
	kinds, _, err := s.env.Codec.Scheme().ObjectKinds(obj)
	if runtime.IsNotRegisteredError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r := s.resourceOfKind(kinds[0])
	if r == nil {
		return nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if _, err := r.Get(context.Background(), namespace, m.GetName(), ""); err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	if r.Definition.Default != nil {
		r.Definition.Default(obj)
	}
	o := registry.WriteOptions{Warn: func(string) {}}
	if _, err := r.Create(context.Background(), namespace, obj, o); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s %q: %w", r.Definition.Singular, m.GetName(), err)
	}
	return nil
}

// resourceOfKind returns the resource of a kind, or nil if the kind is not served.
func (s *Server) resourceOfKind(kind schema.GroupVersionKind) *registry.Resource {
	for _, r := range s.served.Load().resources {
		if r.Definition.GroupVersionKind() == kind {
			return r
		}
	}
	return nil
}

// The addresses that the Service of the API claims: the first address of the cluster IP range, and behind it one that
// is reserved for documentation. The server has no address of its own that validation would accept.
const (
	kubernetesName    = "kubernetes"
	kubernetesIP      = "10.96.0.1"
	kubernetesAddress = "192.0.2.1"
	kubernetesPort    = 443
	securePort        = 6443
)

// kubernetesService returns the Service through which the pods of a cluster find its API, and its endpoints.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controlplane/controller/kubernetesservice,
// pkg/controlplane/reconcilers/endpointsadapter.go.
func kubernetesService() []runtime.Object {
	named := func(labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: kubernetesName, Namespace: metav1.NamespaceDefault, Labels: labels}
	}
	port := ptr.To[int32](securePort)
	return []runtime.Object{
		&corev1.Service{
			ObjectMeta: named(map[string]string{"component": "apiserver", "provider": "kubernetes"}),
			Spec: corev1.ServiceSpec{
				Ports: []corev1.ServicePort{{
					Name: "https", Protocol: corev1.ProtocolTCP, Port: kubernetesPort,
					TargetPort: intstr.FromInt32(securePort),
				}},
				ClusterIP: kubernetesIP, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack),
				SessionAffinity: corev1.ServiceAffinityNone, Type: corev1.ServiceTypeClusterIP,
			},
		},
		//lint:ignore SA1019 clients that do not know EndpointSlices still read them
		&corev1.Endpoints{
			ObjectMeta: named(map[string]string{discoveryv1.LabelSkipMirror: "true"}),
			//lint:ignore SA1019 see above
			Subsets: []corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: kubernetesAddress}},
				Ports:     []corev1.EndpointPort{{Name: "https", Port: securePort, Protocol: corev1.ProtocolTCP}},
			}},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  named(map[string]string{discoveryv1.LabelServiceName: kubernetesName}),
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{kubernetesAddress}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			}},
			Ports: []discoveryv1.EndpointPort{
				{Name: ptr.To("https"), Port: port, Protocol: ptr.To(corev1.ProtocolTCP)},
			},
		},
	}
}
