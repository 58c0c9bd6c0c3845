package lean

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Seed is what everything random in the generated objects is derived from.
const Seed = 20261121

// Services is the number of Deployments that the pods belong to, each with a ReplicaSet, a node pool and a team of
// its own.
const Services = 300

// epoch is when the first pod was created.
var epoch = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

// Pod returns the i-th pod as a cluster of 1,000 nodes would hold it: its own name, UID, IP, node, projected-token
// volume, container ids and times; all else as its Deployment's other pods have it. version is its resource version.
func Pod(i int, version int) *corev1.Pod {
	r := rand.New(rand.NewPCG(Seed, uint64(i)))
	s := newService(i % Services)
	created := metav1.NewTime(epoch.Add(time.Duration(r.IntN(7*24*3600)) * time.Second))
	token := "kube-api-access-" + letters(r, 5)
	p := &corev1.Pod{ObjectMeta: s.metadata(r, created), Spec: s.spec(r, token)}
	p.Name = p.GenerateName + suffix(i/Services)
	p.ResourceVersion = strconv.Itoa(version)
	p.Status = s.status(r, p, created, token, i)
	p.ManagedFields = managedFields(p, created)
	return p
}

// service is what all pods of one Deployment have in common.
type service struct {
	n                             int
	name, namespace, image, proxy string
	hash                          string
	owner                         types.UID
	cpu, memory                   resource.Quantity
}

func newService(n int) service {
	r := rand.New(rand.NewPCG(Seed+1, uint64(n)))
	return service{
		n: n, name: fmt.Sprintf("%s-%03d", []string{"checkout", "catalog", "payments", "search", "profile"}[n%5], n),
		namespace: fmt.Sprintf("team-%02d", n%40),
		image:     fmt.Sprintf("registry.example.com/shop/service-%03d:v1.%d.%d", n, r.IntN(40), r.IntN(9)),
		proxy:     "registry.example.com/mesh/proxyv2:1.27.1",
		hash:      letters(r, 10), owner: uid(r), cpu: resource.MustParse(strconv.Itoa(100*(1+n%8)) + "m"),
		memory: resource.MustParse(strconv.Itoa(128*(1+n%6)) + "Mi"),
	}
}

func (s service) metadata(r *rand.Rand, created metav1.Time) metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		GenerateName: s.name + "-" + s.hash + "-", Namespace: s.namespace, UID: uid(r), CreationTimestamp: created,
		Labels: map[string]string{
			"app.kubernetes.io/name": s.name, "app.kubernetes.io/instance": s.name + "-prod",
			"app.kubernetes.io/part-of": "shop",
			"pod-template-hash":         s.hash, "team": s.namespace,
			"tier": []string{"web", "backend", "batch"}[s.n%3],
		},
		Annotations: map[string]string{
			"prometheus.io/scrape": "true", "prometheus.io/port": "9090",
			"checksum/config":                   fmt.Sprintf("%064x", s.n*7919),
			"kubectl.kubernetes.io/restartedAt": epoch.Add(time.Duration(s.n) * time.Minute).Format(time.RFC3339),
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: s.name + "-" + s.hash, UID: s.owner, Controller: &yes,
			BlockOwnerDeletion: &yes,
		}},
	}
}

func (s service) spec(r *rand.Rand, token string) corev1.PodSpec {
	grace, priority, links := int64(30), int32(0), true
	preempt := corev1.PreemptLowerPriority
	tolerate := int64(300)
	return corev1.PodSpec{
		Volumes: s.volumes(token), Containers: []corev1.Container{s.container(token), s.sidecar(token)},
		RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: &grace,
		DNSPolicy:          corev1.DNSClusterFirst,
		ServiceAccountName: s.name, DeprecatedServiceAccount: s.name,
		NodeName:        fmt.Sprintf("node-%04d.example.com", r.IntN(1000)),
		SecurityContext: &corev1.PodSecurityContext{}, SchedulerName: "default-scheduler", Priority: &priority,
		EnableServiceLinks: &links, PreemptionPolicy: &preempt,
		Tolerations: []corev1.Toleration{
			{
				Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &tolerate,
			},
			{
				Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &tolerate,
			},
		},
	}
}

func (s service) volumes(token string) []corev1.Volume {
	mode, expiration := int32(420), int64(3607)
	return []corev1.Volume{
		{
			Name: "config",
			VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: s.name + "-config"}, DefaultMode: &mode,
				},
			},
		},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{
			Name: token,
			VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				DefaultMode: &mode,
				Sources: []corev1.VolumeProjection{
					{
						ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
							ExpirationSeconds: &expiration,
							Path:              "token",
						},
					},
					{
						ConfigMap: &corev1.ConfigMapProjection{
							LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
							Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
						},
					},
					{
						DownwardAPI: &corev1.DownwardAPIProjection{
							Items: []corev1.DownwardAPIVolumeFile{
								{
									Path: "namespace",
									FieldRef: &corev1.ObjectFieldSelector{
										APIVersion: "v1",
										FieldPath:  "metadata.namespace",
									},
								},
							},
						},
					},
				},
			}},
		},
	}
}

func (s service) container(token string) corev1.Container {
	env := []corev1.EnvVar{
		{
			Name: "POD_NAME",
			ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
			},
		},
		{Name: "SERVICE_NAME", Value: s.name},
		{Name: "LOG_LEVEL", Value: "info"},
		{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://otel-collector.monitoring:4317"},
		{
			Name: "DATABASE_URL",
			ValueFrom: &corev1.EnvVarSource{
				SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: s.name + "-db"}, Key: "url",
				},
			},
		},
	}
	probe := func(path string, delay int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{
					Path: path, Port: intstr.FromString("http"),
					Scheme: corev1.URISchemeHTTP,
				},
			},
			InitialDelaySeconds: delay, TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
		}
	}
	no, user := false, int64(65532)
	return corev1.Container{
		Name: "app", Image: s.image, Args: []string{"serve", "--listen=:8080", "--config=/etc/config/service.yaml"},
		Env: env,
		Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
			{Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP},
		},
		Resources: s.resources(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", ReadOnly: true, MountPath: "/etc/config"},
			{Name: "tmp", MountPath: "/tmp"},
			{Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
		},
		LivenessProbe: probe("/healthz", 10), ReadinessProbe: probe("/readyz", 3),
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		ImagePullPolicy: corev1.PullIfNotPresent,
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: &user, AllowPrivilegeEscalation: &no,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func (s service) sidecar(token string) corev1.Container {
	return corev1.Container{
		Name: "proxy", Image: s.proxy, Args: []string{"proxy", "sidecar", "--serviceCluster=" + s.name},
		Ports: []corev1.ContainerPort{{Name: "envoy", ContainerPort: 15090, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("50m"), "memory": resource.MustParse("64Mi")},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"},
		},
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		ImagePullPolicy: corev1.PullIfNotPresent,
	}
}

func (s service) resources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": s.cpu, "memory": s.memory},
		Limits:   corev1.ResourceList{"memory": s.memory},
	}
}

func (s service) status(r *rand.Rand, p *corev1.Pod, created metav1.Time, token string, i int) corev1.PodStatus {
	after := func(seconds int) metav1.Time {
		return metav1.NewTime(created.Add(time.Duration(seconds) * time.Second))
	}
	pulled, ready := after(1+r.IntN(4)), after(5+r.IntN(20))
	condition := func(t corev1.PodConditionType, at metav1.Time) corev1.PodCondition {
		return corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: at, ObservedGeneration: 1}
	}
	host := fmt.Sprintf("10.0.%d.%d", r.IntN(4), r.IntN(250))
	ip := fmt.Sprintf("10.%d.%d.%d", 64+i>>16, i>>8&255, i&255)
	started := true
	container := func(c corev1.Container) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: c.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: pulled}},
			Ready: true, Image: c.Image,
			ImageID:     "registry.example.com/shop@sha256:" + fmt.Sprintf("%064x", uint64(s.n+1)*0x9e3779b97f4a7c15),
			ContainerID: "containerd://" + hex(r, 64), Started: &started,
			AllocatedResources: c.Resources.Requests, Resources: c.Resources.DeepCopy(),
		}
	}
	return corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: host, HostIPs: []corev1.HostIP{{IP: host}}, PodIP: ip,
		PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &created, QOSClass: corev1.PodQOSBurstable,
		ObservedGeneration: 1,
		Conditions: []corev1.PodCondition{
			condition(corev1.PodReadyToStartContainers, pulled), condition(corev1.PodInitialized, created),
			condition(corev1.PodReady, ready),
			condition(corev1.ContainersReady, ready), condition(corev1.PodScheduled, created),
		},
		ContainerStatuses: []corev1.ContainerStatus{container(p.Spec.Containers[0]), container(p.Spec.Containers[1])},
	}
}

// managedFields is what the controller manager and the kubelet own.
func managedFields(p *corev1.Pod, created metav1.Time) []metav1.ManagedFieldsEntry {
	const spec = `{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},"f:kubectl.kubernetes.io/restartedAt":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/instance":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:pod-template-hash":{},"f:team":{},"f:tier":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"%s\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:args":{},"f:env":{".":{},"k:{\"name\":\"DATABASE_URL\"}":{".":{},"f:name":{},"f:valueFrom":{".":{},"f:secretKeyRef":{}}}},"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":{".":{},"f:failureThreshold":{},"f:httpGet":{".":{},"f:path":{},"f:port":{},"f:scheme":{}}},"f:name":{},"f:resources":{".":{},"f:limits":{},"f:requests":{}}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:serviceAccountName":{},"f:volumes":{".":{},"k:{\"name\":\"config\"}":{".":{},"f:configMap":{}}}}}`
	const status = `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"%s\"}":{".":{},"f:ip":{}}},"f:startTime":{}}}`
	entry := func(manager, sub, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &created,
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}, Subresource: sub,
		}
	}
	return []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", "", fmt.Sprintf(spec, p.OwnerReferences[0].UID)),
		entry("kubelet", "status", fmt.Sprintf(status, p.Status.PodIP)),
	}
}

// alphabet is what names are generated of.
const alphabet = "bcdfghjklmnpqrstvwxz2456789"

func letters(r *rand.Rand, n int) string { return pick(r, n, alphabet) }

// suffix is what the name of a Deployment's n-th pod ends in. It looks random, and no two of 14 million are the same:
// of random ones some would be, among 100,000 pods.
func suffix(n int) string {
	b := make([]byte, 5)
	for i, x := 0, n*7_654_321%(27*27*27*27*27); i < len(b); i, x = i+1, x/len(alphabet) {
		b[i] = alphabet[x%len(alphabet)]
	}
	return string(b)
}

func hex(r *rand.Rand, n int) string { return pick(r, n, "0123456789abcdef") }

func pick(r *rand.Rand, n int, alphabet string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

func uid(r *rand.Rand) types.UID {
	h := hex(r, 32)
	return types.UID(h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:])
}
