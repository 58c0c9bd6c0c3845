package serving

import (
	"bytes"
	"context"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/dump"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// HasAddress reports whether a pod can be reached at all: it has not ended, and has an IP. It may be being deleted.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, ShouldPodBeInEndpoints
func HasAddress(pod *corev1.Pod) bool {
	return !pods.Terminal(pod) && (pod.Status.PodIP != "" || len(pod.Status.PodIPs) > 0)
}

// Hostname returns the name that the pod has in the Service's domain, or "" if it has none.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, ShouldSetHostname
func Hostname(svc *corev1.Service, pod *corev1.Pod) string {
	if pod.Spec.Subdomain != svc.Name || pod.Namespace != svc.Namespace {
		return ""
	}
	return pod.Spec.Hostname
}

// HasClusterIP reports whether the Service has an address of its own. A headless Service has none, nor has one to which
// none was assigned yet.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/helper/helpers.go, IsServiceIPSet
func HasClusterIP(svc *corev1.Service) bool {
	return svc.Spec.ClusterIP != corev1.ClusterIPNone && svc.Spec.ClusterIP != ""
}

// HasSelector reports whether a controller publishes the Service's addresses. If the Service has no selector, or only
// names an outside host, the controllers leave alone what others publish under its name.
func HasSelector(svc *corev1.Service) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName && svc.Spec.Selector != nil
}

// ElectsLeader reports whether Endpoints with these annotations are a lock for electing a leader. Such Endpoints belong
// to no Service.
//
// Source: k8s.io/client-go v0.37.2 tools/leaderelection/resourcelock/interface.go, LeaderElectionRecordAnnotationKey
func ElectsLeader(annotations map[string]string) bool {
	_, found := annotations["control-plane.alpha.kubernetes.io/leader"]
	return found
}

// TargetPort returns the number of the pod's port behind one of the Service's ports. It returns false if the pod has
// none. A number is used as it is. A name is looked up among the ports of the same protocol, in the containers and then
// in the init containers that keep running.
//
// Source: k8s.io/endpointslice v0.37.2 utils.go, FindPort
func TargetPort(pod *corev1.Pod, port *corev1.ServicePort) (int32, bool) {
	if port.TargetPort.Type != intstr.String {
		return port.TargetPort.IntVal, true
	}
	name := port.TargetPort.StrVal
	for i := range pod.Spec.Containers {
		if number, ok := containerPort(&pod.Spec.Containers[i], name, port.Protocol); ok {
			return number, true
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			continue
		}
		if number, ok := containerPort(c, name, port.Protocol); ok {
			return number, true
		}
	}
	return 0, false
}

func containerPort(c *corev1.Container, name string, protocol corev1.Protocol) (int32, bool) {
	for i := range c.Ports {
		if c.Ports[i].Name == name && c.Ports[i].Protocol == protocol {
			return c.Ports[i].ContainerPort, true
		}
	}
	return 0, false
}

// PodEvents queues the Services that a change of a pod concerns, after batchPeriod, so that one sync serves all changes
// until then. Zero means no delay.
func (f *Finder) PodEvents(batchPeriod time.Duration) handler.EventHandler[*corev1.Pod, reconcile.Request] {
	queue := func(q reconcile.Enqueuer[reconcile.Request], services []reconcile.Request) {
		for _, svc := range services {
			if batchPeriod > 0 {
				q.AddAfter(svc, batchPeriod)
			} else {
				q.Add(svc)
			}
		}
	}
	return handler.EventHandler[*corev1.Pod, reconcile.Request]{
		OnAdd: func(ctx context.Context, pod *corev1.Pod, _ bool, q reconcile.Enqueuer[reconcile.Request]) {
			queue(q, f.Selecting(ctx, pod.Namespace, pod.Labels))
		},
		OnUpdate: func(ctx context.Context, old, pod *corev1.Pod, q reconcile.Enqueuer[reconcile.Request]) {
			queue(q, f.concerned(ctx, old, pod))
		},
		OnDelete: func(ctx context.Context, gone informer.Deleted[*corev1.Pod],
			q reconcile.Enqueuer[reconcile.Request],
		) {
			queue(q, f.Selecting(ctx, gone.Object.Namespace, gone.Object.Labels))
		},
	}
}

// concerned returns the Services whose addresses may change because the pod did. If only the pod's labels changed,
// these are the Services that selected it either before or after, but not both.
//
// Source: k8s.io/endpointslice v0.37.2 util/controller_utils.go, GetPodUpdateProjectionKey and GetServicesToUpdate
func (f *Finder) concerned(ctx context.Context, old, pod *corev1.Pod) []reconcile.Request {
	changed, relabelled := podChanged(old, pod), !maps.Equal(old.Labels, pod.Labels)
	if old.ResourceVersion == pod.ResourceVersion || (!changed && !relabelled) {
		return nil
	}
	now := f.Selecting(ctx, pod.Namespace, pod.Labels)
	if !relabelled {
		return now
	}
	before := f.Selecting(ctx, old.Namespace, old.Labels)
	left := without(before, now)
	if changed {
		return append(now, left...)
	}
	return append(without(now, before), left...)
}

func without(all, some []reconcile.Request) []reconcile.Request {
	return slices.DeleteFunc(slices.Clone(all), func(r reconcile.Request) bool { return slices.Contains(some, r) })
}

// podChanged reports whether something changed that is published of a pod, or that decides whether it is published. It
// need not compare other published fields, which never change.
func podChanged(old, pod *corev1.Pod) bool {
	return (old.DeletionTimestamp == nil) != (pod.DeletionTimestamp == nil) ||
		pods.Terminal(old) != pods.Terminal(pod) ||
		pods.Ready(old) != pods.Ready(pod) ||
		old.Status.PodIP != pod.Status.PodIP ||
		!slices.Equal(old.Status.PodIPs, pod.Status.PodIPs) ||
		old.Spec.NodeName != pod.Spec.NodeName ||
		old.Spec.Hostname != pod.Spec.Hostname || old.Spec.Subdomain != pod.Spec.Subdomain
}

// SortByHash sorts by the hash of each element's dump. The order has no meaning. It is the one that
// kube-controller-manager writes, and it depends on the names of the Go types and their fields.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/endpoints/util.go, SortSubsets, and pkg/util/hash/hash.go;
// k8s.io/endpointslice v0.37.2 util/controller_utils.go, portsInOrder
func SortByHash[T any](items []T) {
	if len(items) < 2 {
		return
	}
	type hashed struct {
		sum  []byte
		item T
	}
	keyed := make([]hashed, len(items))
	hasher := fnv.New128a()
	for i, item := range items {
		hasher.Reset()
		// Writing to a hash cannot fail.
		_, _ = io.WriteString(hasher, dump.ForHash(item))
		keyed[i] = hashed{sum: hasher.Sum(nil), item: item}
	}
	slices.SortFunc(keyed, func(a, b hashed) int { return bytes.Compare(a.sum, b.sum) })
	for i := range keyed {
		items[i] = keyed[i].item
	}
}
