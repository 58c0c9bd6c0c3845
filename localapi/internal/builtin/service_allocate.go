package builtin

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// portRange is the one range that node ports and health check ports come from.
const portRange = "nodePort"

// allocateService gives a Service its cluster IPs and node ports, or takes them back.
//
// The cluster is single-stack IPv4: a Service that prefers both families gets one, a Service that requires both is
// refused, as on any such cluster.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/service/storage/alloc.go, storage.go.
func allocateService(_ context.Context, a resource.Allocator, obj, old runtime.Object) (func(stored bool), error) {
	was, _ := old.(*corev1.Service)
	allocator := &serviceAllocator{pool: a}
	if obj == nil {
		allocator.release(was, nil)
		return allocator.done, nil
	}
	s := obj.(*corev1.Service)
	if was != nil {
		adoptAllocated(s, was)
		adoptClusterIPs(s, was)
	} else if s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0 {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	if err := allocator.allocate(s, was); err != nil {
		allocator.done(false)
		return nil, err
	}
	if was != nil {
		allocator.release(was, s)
	}
	return allocator.done, nil
}

// serviceAllocator allocates for one write. It records what the write allocates and releases, until it is known whether
// the write was stored.
type serviceAllocator struct {
	pool                          resource.Allocator
	allocatedIPs, releasedIPs     []string
	allocatedPorts, releasedPorts []int32
}

// done frees what the write released, or if it was not stored, what it allocated.
func (a *serviceAllocator) done(stored bool) {
	ips, ports := a.allocatedIPs, a.allocatedPorts
	if stored {
		ips, ports = a.releasedIPs, a.releasedPorts
	}
	for _, ip := range ips {
		a.pool.ReleaseIP(ip)
	}
	for _, p := range ports {
		a.pool.ReleasePort(portRange, p)
	}
}

func (a *serviceAllocator) allocate(s, old *corev1.Service) error {
	if err := settleFamilies(s, old); err != nil {
		return err
	}
	if err := a.allocateIPs(s, old); err != nil {
		return err
	}
	if err := a.allocatePorts(s, old); err != nil {
		return err
	}
	return a.allocateHealthPort(s, old)
}

// adoptAllocated copies allocated values from the old Service where the client left them out.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/service/storage/storage.go patchAllocatedValues.
func adoptAllocated(s, old *corev1.Service) {
	now, was := &s.Spec, &old.Spec
	if hasClusterIP(old) && hasClusterIP(s) {
		setDefault(&now.ClusterIP, was.ClusterIP)
		if len(now.ClusterIPs) == 0 {
			now.ClusterIPs = slices.Clone(was.ClusterIPs)
		}
	}
	if wantsNodePorts(old) && wantsNodePorts(s) {
		used := nodePortsOf(old).Intersection(nodePortsOf(s))
		byName := map[string]int32{}
		for i := range was.Ports {
			byName[was.Ports[i].Name] = was.Ports[i].NodePort
		}
		for i := range now.Ports {
			if p := &now.Ports[i]; p.NodePort == 0 && !used.Has(byName[p.Name]) {
				p.NodePort = byName[p.Name]
			}
		}
	}
	if hasHealthPort(old) && hasHealthPort(s) {
		setDefault(&now.HealthCheckNodePort, was.HealthCheckNodePort)
	}
}

// adoptClusterIPs completes an update in which the client changed only one of clusterIP and clusterIPs.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/service/storage/storage.go normalizeClusterIPs.
func adoptClusterIPs(s, old *corev1.Service) {
	now, was := &s.Spec, &old.Spec
	if len(was.ClusterIPs) > 0 && len(now.ClusterIPs) == 0 && now.ClusterIP == was.ClusterIP {
		now.ClusterIPs = slices.Clone(was.ClusterIPs)
	}
	if now.ClusterIP == was.ClusterIP || !slices.Equal(now.ClusterIPs, was.ClusterIPs) {
		return
	}
	if now.ClusterIP == "" {
		now.ClusterIPs = nil
	} else {
		now.ClusterIPs = []string{now.ClusterIP}
	}
}

func wantsNodePorts(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeNodePort ||
		(s.Spec.Type == corev1.ServiceTypeLoadBalancer && ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true))
}

// settleFamilies fills in ipFamilyPolicy and ipFamilies.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/service/storage/alloc.go initIPFamilyFields.
func settleFamilies(s, old *corev1.Service) error {
	if !hasClusterIP(s) {
		return nil
	}
	spec := &s.Spec
	withoutSelector := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	switch {
	case spec.IPFamilyPolicy != nil:
	case old != nil && old.Spec.IPFamilyPolicy != nil:
		spec.IPFamilyPolicy = ptr.To(*old.Spec.IPFamilyPolicy)
	case withoutSelector:
		spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	default:
		spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
	}
	errs := verify.Errors(field.NewPath("spec"), func(f verify.Field) {
		validateClusterIPs(f, s)
		f.Reject("ipFamilyPolicy", !f.Failed() && *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack &&
			len(spec.IPFamilies) == 2, spec.IPFamilyPolicy,
			"must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified")
	})
	if len(errs) > 0 {
		return invalidService(s, errs)
	}
	if withoutSelector {
		settleHeadless(spec)
		return nil
	}
	errs = verify.Errors(field.NewPath("spec"), func(f verify.Field) {
		f.Reject("ipFamilyPolicy", *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack, spec.IPFamilyPolicy,
			"this cluster is not configured for dual-stack services")
		for i, ip := range spec.ClusterIPs {
			missing := ip != corev1.ClusterIPNone && i >= len(spec.IPFamilies) && familyOf(ip) != corev1.IPv4Protocol
			f.Child("clusterIPs").Index(i).Rejectf("", missing, spec.ClusterIPs,
				"%s is not configured on this cluster", familyOf(ip))
		}
		verify.Each(f, "ipFamilies", spec.IPFamilies, func(f verify.Field, family *corev1.IPFamily) {
			f.Reject("", *family != corev1.IPv4Protocol, *family, "not configured on this cluster")
		})
	})
	if len(errs) > 0 {
		return invalidService(s, errs)
	}
	spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	return nil
}

// settleHeadless gives a headless Service without a selector all families, because its endpoints may have any.
func settleHeadless(spec *corev1.ServiceSpec) {
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if len(spec.IPFamilies) == 2 || *spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack {
		return
	}
	second := corev1.IPv6Protocol
	if spec.IPFamilies[0] == corev1.IPv6Protocol {
		second = corev1.IPv4Protocol
	}
	spec.IPFamilies = append(spec.IPFamilies, second)
}

// allocateIPs reserves the addresses that the Service does not have yet. If one address replaces another, validation
// rejects it.
func (a *serviceAllocator) allocateIPs(s, old *corev1.Service) error {
	spec := &s.Spec
	if !hasClusterIP(s) || isHeadless(s) || (old != nil && hasClusterIP(old)) {
		return nil
	}
	if len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = make([]string, len(spec.IPFamilies))
	}
	for i, want := range spec.ClusterIPs {
		ip, err := a.pool.IP(string(spec.IPFamilies[i]), want)
		if err != nil {
			detail := fmt.Sprintf("failed to allocate IP: %v", err)
			if want != "" {
				detail = fmt.Sprintf("failed to allocate IP %v: %v", want, err)
			}
			return invalidService(s,
				field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs"), spec.ClusterIPs, detail)})
		}
		a.allocatedIPs = append(a.allocatedIPs, ip)
		spec.ClusterIPs[i] = ip
	}
	spec.ClusterIP = spec.ClusterIPs[0]
	return nil
}

// allocatePorts reserves node ports: those that the client asks for, and one for each port that needs one. Ports with
// the same number and different protocols share a node port.
func (a *serviceAllocator) allocatePorts(s, old *corev1.Service) error {
	if !hasNodePorts(s) {
		return nil
	}
	held := map[int32]bool{}
	if old != nil && hasNodePorts(old) {
		for p := range nodePortsOf(old) {
			held[p] = true
		}
	}
	shared := map[int32]int32{} // node port by service port, for a create
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.NodePort == 0 && !wantsNodePorts(s) {
			continue
		}
		if p.NodePort == 0 && old == nil {
			p.NodePort = cmp.Or(shared[p.Port], askedNodePort(s, p.Port))
		}
		if !held[p.NodePort] {
			if err := a.allocatePort(s, i); err != nil {
				return err
			}
			held[p.NodePort] = true
		}
		shared[p.Port] = p.NodePort
	}
	return nil
}

func (a *serviceAllocator) allocatePort(s *corev1.Service, i int) error {
	p := &s.Spec.Ports[i]
	port, err := a.pool.Port(portRange, p.NodePort)
	switch {
	case err != nil && p.NodePort == 0:
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", err))
	case err != nil:
		return invalidService(s, field.ErrorList{
			field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), p.NodePort, err.Error()),
		})
	}
	a.allocatedPorts = append(a.allocatedPorts, port)
	p.NodePort = port
	return nil
}

// askedNodePort returns the node port that the client gave to another protocol of the same service port.
func askedNodePort(s *corev1.Service, port int32) int32 {
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; p.Port == port && p.NodePort != 0 {
			return p.NodePort
		}
	}
	return 0
}

func (a *serviceAllocator) allocateHealthPort(s, old *corev1.Service) error {
	if !hasHealthPort(s) || (old != nil && hasHealthPort(old)) {
		return nil
	}
	want := s.Spec.HealthCheckNodePort
	port, err := a.pool.Port(portRange, want)
	if err != nil {
		return apierrors.NewInternalError(
			fmt.Errorf("failed to allocate requested HealthCheck NodePort %v: %w", want, err),
		)
	}
	a.allocatedPorts = append(a.allocatedPorts, port)
	s.Spec.HealthCheckNodePort = port
	return nil
}

// release records the addresses and ports of old that s, which may be nil, does not keep.
func (a *serviceAllocator) release(old, s *corev1.Service) {
	if s == nil {
		s = &corev1.Service{}
	}
	ips := sets.New(old.Spec.ClusterIPs...).Delete(corev1.ClusterIPNone).Delete(s.Spec.ClusterIPs...)
	ports := nodePortsOf(old).Insert(old.Spec.HealthCheckNodePort).Difference(nodePortsOf(s))
	a.releasedIPs = sets.List(ips)
	a.releasedPorts = sets.List(ports.Delete(0, s.Spec.HealthCheckNodePort))
}

func invalidService(s *corev1.Service, errs field.ErrorList) error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name, errs)
}
