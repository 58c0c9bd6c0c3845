package localapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/builtin"
	"github.com/flyball-dev/flyball/localapi/internal/handlers"
	"github.com/flyball-dev/flyball/localapi/internal/ranges"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
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
	if o.ClusterObjects {
		s.registers = true
		if err := errors.Join(s.ensureServiceCIDR(), s.registerVersions(context.Background()),
			s.ensure(metav1.NamespaceSystem, tokenTracking())); err != nil {
			return err
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

// ensureServiceCIDR creates the object that names the ranges of Service addresses, with its status.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controlplane/controller/defaultservicecidr.
func (s *Server) ensureServiceCIDR() error {
	r := s.resourceOfKind(networkingv1.SchemeGroupVersion.WithKind("ServiceCIDR"))
	if r == nil {
		return nil
	}
	_, err := r.Get(context.Background(), "", kubernetesName, "")
	if !apierrors.IsNotFound(err) {
		return err
	}
	return s.Seed(context.Background(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: kubernetesName},
		Spec:       networkingv1.ServiceCIDRSpec{CIDRs: ranges.CIDRs()},
		Status: networkingv1.ServiceCIDRStatus{Conditions: []metav1.Condition{{
			Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue,
			Message: "Kubernetes default Service CIDR is ready", LastTransitionTime: metav1.Now(),
		}}},
	})
}

// tokenTracking returns the object that says since when the use of tokens in Secrets is noted.
// kube-controller-manager logs an error without it.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controlplane/controller/legacytokentracking.
func tokenTracking() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-legacy-service-account-token-tracking"},
		Data:       map[string]string{"since": time.Now().UTC().Format(time.DateOnly)},
	}
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
	m := resource.Meta(obj)
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
// Source: k8s.io/kubernetes v1.37.2 pkg/controlplane/controller/kubernetesservice,
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

// defaultRoles returns the default roles of a cluster that users meet, and their bindings.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go.
func defaultRoles() []runtime.Object {
	urls := func(urls ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: urls}}
	}
	health := handlers.PublicPaths()
	discovery := append([]string{"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"}, health...)
	reviews := []rbacv1.PolicyRule{
		rules("authorization.k8s.io", []string{"create"}, "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
		rules("authentication.k8s.io", []string{"create"}, "selfsubjectreviews"),
	}
	everything := []rbacv1.PolicyRule{
		rules("*", []string{"*"}, "*"), {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
	}
	objects := []runtime.Object{
		clusterRole("cluster-admin", everything...), bound("cluster-admin", auth.Masters),
		clusterRole("system:discovery", urls(discovery...)...), bound("system:discovery", auth.Authenticated),
		clusterRole("system:basic-user", reviews...), bound("system:basic-user", auth.Authenticated),
		clusterRole("system:public-info-viewer", urls(health...)...),
		bound("system:public-info-viewer", auth.Authenticated, auth.Unauthenticated),
		// Bound to nobody: programs that serve pages of their own bind it, to ask who may see them.
		clusterRole("system:auth-delegator", rules("authentication.k8s.io", []string{"create"}, "tokenreviews"),
			rules("authorization.k8s.io", []string{"create"}, "subjectaccessreviews")),
	}
	return append(objects, userRoles()...)
}

// userRoles returns the roles admin, edit and view. Each aggregates the one below it and every role that is labelled
// for it. They also name types that this server does not have, because an admin of a namespace may grant exactly what
// its role lists.
func userRoles() []runtime.Object {
	aggregate := func(role string) map[string]string {
		return map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + role: "true"}
	}
	part := func(role string, rules ...rbacv1.PolicyRule) runtime.Object {
		r := clusterRole("system:aggregate-to-"+role, rules...)
		maps.Copy(r.Labels, aggregate(role))
		return r
	}
	whole := func(role, partOf string) runtime.Object {
		r := clusterRole(role)
		r.AggregationRule = &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: aggregate(role)}},
		}
		if partOf != "" {
			maps.Copy(r.Labels, aggregate(partOf))
		}
		return r
	}
	return []runtime.Object{
		whole("admin", ""), whole("edit", "admin"), whole("view", "edit"),
		part("admin",
			rules("authorization.k8s.io", []string{"create"}, "localsubjectaccessreviews"),
			rules("rbac.authorization.k8s.io", append(readVerbs(), writeVerbs()...), "roles", "rolebindings"),
		),
		part("edit", editorRules()...),
		part("view", viewerRules()...),
	}
}

func readVerbs() []string { return []string{"get", "list", "watch"} }
func writeVerbs() []string {
	return []string{"create", "update", "patch", "delete", "deletecollection"}
}

// viewerRules returns the read permissions that cannot be used to gain further rights.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go viewRules.
func viewerRules() []rbacv1.PolicyRule {
	view := func(group string, resources ...string) rbacv1.PolicyRule {
		return rules(group, readVerbs(), resources...)
	}
	return []rbacv1.PolicyRule{
		view("", "pods", "pods/status", "pods/log", "serviceaccounts", "services", "services/status", "endpoints",
			"configmaps",
			"persistentvolumeclaims", "persistentvolumeclaims/status", "bindings", "namespaces", "namespaces/status",
			"events", "replicationcontrollers", "replicationcontrollers/scale", "replicationcontrollers/status",
			"limitranges", "resourcequotas", "resourcequotas/status"),
		view("events.k8s.io", "events"),
		view("discovery.k8s.io", "endpointslices"),
		view("apps", "controllerrevisions", "statefulsets", "statefulsets/status", "statefulsets/scale", "daemonsets",
			"daemonsets/status",
			"deployments", "deployments/status", "deployments/scale", "replicasets", "replicasets/status",
			"replicasets/scale"),
		view("autoscaling", "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
		view("batch", "jobs", "jobs/status", "cronjobs", "cronjobs/status"),
		view("extensions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale", "deployments/status",
			"ingresses", "ingresses/status", "replicasets", "replicasets/scale", "replicasets/status",
			"replicationcontrollers/scale", "networkpolicies"),
		view("policy", "poddisruptionbudgets", "poddisruptionbudgets/status"),
		view("networking.k8s.io", "networkpolicies", "ingresses", "ingresses/status"),
		view("resource.k8s.io", "resourceclaims", "resourceclaims/status", "resourceclaimtemplates"),
	}
}

// editorRules returns what a user of a namespace may do beyond reading. It excludes writing status and endpoints.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go editRules.
func editorRules() []rbacv1.PolicyRule {
	edit := func(group string, resources ...string) rbacv1.PolicyRule {
		return rules(group, writeVerbs(), resources...)
	}
	return []rbacv1.PolicyRule{
		rules("", readVerbs(), "secrets", "pods/attach", "pods/proxy", "pods/exec", "pods/portforward",
			"services/proxy"),
		rules("", []string{"impersonate"}, "serviceaccounts"),
		edit("", "pods", "pods/attach", "pods/proxy", "pods/exec", "pods/portforward", "serviceaccounts", "services",
			"services/proxy", "persistentvolumeclaims", "configmaps", "secrets", "events", "replicationcontrollers",
			"replicationcontrollers/scale"),
		rules("", []string{"create"}, "pods/eviction", "serviceaccounts/token"),
		edit("events.k8s.io", "events"),
		edit("apps", "statefulsets", "statefulsets/scale", "daemonsets", "deployments", "deployments/scale",
			"deployments/rollback", "replicasets", "replicasets/scale"),
		edit("autoscaling", "horizontalpodautoscalers"),
		edit("batch", "jobs", "cronjobs"),
		edit("extensions", "daemonsets", "deployments", "deployments/scale", "deployments/rollback", "ingresses",
			"replicasets", "replicasets/scale", "replicationcontrollers/scale", "networkpolicies"),
		edit("policy", "poddisruptionbudgets"),
		edit("networking.k8s.io", "networkpolicies", "ingresses"),
		rules("coordination.k8s.io", append(readVerbs(), writeVerbs()...), "leases"),
		edit("resource.k8s.io", "resourceclaims", "resourceclaimtemplates"),
	}
}

// rules returns a rule whose verbs are sorted, as the real server has them.
func rules(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	slices.Sort(verbs)
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: bootstrapped(name), Rules: rules}
}

// bootstrapped returns the metadata of a role or binding that the server creates at start-up.
func bootstrapped(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:        name,
		Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}

// bound returns a binding of a cluster role to groups. The binding has the name of the role.
func bound(role string, groups ...string) runtime.Object {
	b := &rbacv1.ClusterRoleBinding{
		ObjectMeta: bootstrapped(role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, group := range groups {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group})
	}
	return b
}
