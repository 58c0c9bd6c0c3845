package localapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// side is one of the two servers, as one script sees it.
type side struct {
	name    string // "kube-apiserver" or "localapi"
	base    string // URL
	client  *http.Client
	script  *script
	names   *names
	kept    map[string]any    // answers by the name they were kept under
	watches map[string]*watch // by name

	generation int  // of the webhooks that the script has configured
	everything bool // the webhooks are for everything
}

func newSide(name, base string, client *http.Client, s *script) *side {
	return &side{
		name: name, base: base, client: client, script: s, names: newNames(s.text),
		kept: map[string]any{}, watches: map[string]*watch{},
	}
}

// answer is what a server said, or the events of a watch.
type answer struct {
	code    int
	headers map[string]any
	body    any // decoded JSON, or a string
}

// tree is the answer as one value, to be compared.
func (a answer) tree() map[string]any {
	return map[string]any{"code": a.code, "headers": a.headers, "body": a.body}
}

// isStarting reports whether kube-apiserver asks to be asked again because the cache of a kind does not serve yet, as
// in the moment after its definition has changed. Every client does so.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/cacher/ready.go
func (a answer) isStarting() bool {
	status, _ := a.body.(map[string]any)
	message, _ := status["message"].(string)
	return a.code == http.StatusTooManyRequests && strings.HasPrefix(message, "storage is (re)initializing")
}

// kind is a resource's place in the API.
type kind struct {
	kind, apiVersion string
	cluster          bool
}

// kinds are the resources that a script can name without a path.
var kinds = map[string]kind{
	"configmaps":               {kind: "ConfigMap", apiVersion: "v1"},
	"endpoints":                {kind: "Endpoints", apiVersion: "v1"},
	"events":                   {kind: "Event", apiVersion: "v1"},
	"namespaces":               {kind: "Namespace", apiVersion: "v1", cluster: true},
	"nodes":                    {kind: "Node", apiVersion: "v1", cluster: true},
	"persistentvolumeclaims":   {kind: "PersistentVolumeClaim", apiVersion: "v1"},
	"pods":                     {kind: "Pod", apiVersion: "v1"},
	"secrets":                  {kind: "Secret", apiVersion: "v1"},
	"serviceaccounts":          {kind: "ServiceAccount", apiVersion: "v1"},
	"services":                 {kind: "Service", apiVersion: "v1"},
	"controllerrevisions":      {kind: "ControllerRevision", apiVersion: "apps/v1"},
	"daemonsets":               {kind: "DaemonSet", apiVersion: "apps/v1"},
	"deployments":              {kind: "Deployment", apiVersion: "apps/v1"},
	"replicasets":              {kind: "ReplicaSet", apiVersion: "apps/v1"},
	"statefulsets":             {kind: "StatefulSet", apiVersion: "apps/v1"},
	"horizontalpodautoscalers": {kind: "HorizontalPodAutoscaler", apiVersion: "autoscaling/v2"},
	"cronjobs":                 {kind: "CronJob", apiVersion: "batch/v1"},
	"jobs":                     {kind: "Job", apiVersion: "batch/v1"},
	"leases":                   {kind: "Lease", apiVersion: "coordination.k8s.io/v1"},
	"endpointslices":           {kind: "EndpointSlice", apiVersion: "discovery.k8s.io/v1"},
	"poddisruptionbudgets":     {kind: "PodDisruptionBudget", apiVersion: "policy/v1"},
	"certificatesigningrequests": {
		kind: "CertificateSigningRequest", apiVersion: "certificates.k8s.io/v1",
		cluster: true,
	},
	"limitranges":            {kind: "LimitRange", apiVersion: "v1"},
	"persistentvolumes":      {kind: "PersistentVolume", apiVersion: "v1", cluster: true},
	"podtemplates":           {kind: "PodTemplate", apiVersion: "v1"},
	"replicationcontrollers": {kind: "ReplicationController", apiVersion: "v1"},
	"resourcequotas":         {kind: "ResourceQuota", apiVersion: "v1"},
	"ingressclasses":         {kind: "IngressClass", apiVersion: "networking.k8s.io/v1", cluster: true},
	"ingresses":              {kind: "Ingress", apiVersion: "networking.k8s.io/v1"},
	"networkpolicies":        {kind: "NetworkPolicy", apiVersion: "networking.k8s.io/v1"},
	"runtimeclasses":         {kind: "RuntimeClass", apiVersion: "node.k8s.io/v1", cluster: true},
	"priorityclasses":        {kind: "PriorityClass", apiVersion: "scheduling.k8s.io/v1", cluster: true},
	"storageclasses":         {kind: "StorageClass", apiVersion: "storage.k8s.io/v1", cluster: true},
	"csidrivers":             {kind: "CSIDriver", apiVersion: "storage.k8s.io/v1", cluster: true},
	"csinodes":               {kind: "CSINode", apiVersion: "storage.k8s.io/v1", cluster: true},
	"csistoragecapacities":   {kind: "CSIStorageCapacity", apiVersion: "storage.k8s.io/v1"},
	"volumeattachments":      {kind: "VolumeAttachment", apiVersion: "storage.k8s.io/v1", cluster: true},
	"flowschemas":            {kind: "FlowSchema", apiVersion: "flowcontrol.apiserver.k8s.io/v1", cluster: true},
	"ipaddresses":            {kind: "IPAddress", apiVersion: "networking.k8s.io/v1", cluster: true},
	"servicecidrs":           {kind: "ServiceCIDR", apiVersion: "networking.k8s.io/v1", cluster: true},
	"deviceclasses":          {kind: "DeviceClass", apiVersion: "resource.k8s.io/v1", cluster: true},
	"devicetaintrules":       {kind: "DeviceTaintRule", apiVersion: "resource.k8s.io/v1", cluster: true},
	"resourceclaims":         {kind: "ResourceClaim", apiVersion: "resource.k8s.io/v1"},
	"resourceclaimtemplates": {kind: "ResourceClaimTemplate", apiVersion: "resource.k8s.io/v1"},
	"resourceslices":         {kind: "ResourceSlice", apiVersion: "resource.k8s.io/v1", cluster: true},
	"prioritylevelconfigurations": {
		kind: "PriorityLevelConfiguration", apiVersion: "flowcontrol.apiserver.k8s.io/v1", cluster: true,
	},
	"storageversionmigrations": {
		kind: "StorageVersionMigration", apiVersion: "storagemigration.k8s.io/v1", cluster: true,
	},
	"volumeattributesclasses": {kind: "VolumeAttributesClass", apiVersion: "storage.k8s.io/v1", cluster: true},
	"clustertrustbundles":     {kind: "ClusterTrustBundle", apiVersion: "certificates.k8s.io/v1", cluster: true},
	"podcertificaterequests":  {kind: "PodCertificateRequest", apiVersion: "certificates.k8s.io/v1"},
	"apiservices":             {kind: "APIService", apiVersion: "apiregistration.k8s.io/v1", cluster: true},
}

// subresourceKinds are the bodies of subresources that are not the object itself.
var subresourceKinds = map[string]kind{
	"scale":    {kind: "Scale", apiVersion: "autoscaling/v1"},
	"binding":  {kind: "Binding", apiVersion: "v1"},
	"eviction": {kind: "Eviction", apiVersion: "policy/v1"},
}

var reference = regexp.MustCompile(`\$\{([^}]*)\}`)

// expand replaces ${ns} and ${name.path}.
func (s *side) expand(text string) string {
	return reference.ReplaceAllStringFunc(text, func(r string) string {
		path := strings.Split(r[2:len(r)-1], ".")
		if path[0] == "ns" {
			return s.script.name
		}
		value := s.kept[path[0]]
		for _, p := range path[1:] {
			switch v := value.(type) {
			case map[string]any:
				value = v[p]
			case []any:
				i, err := strconv.Atoi(p)
				if err != nil || i >= len(v) {
					return "no-such-index"
				}
				value = v[i]
			}
		}
		return fmt.Sprint(value)
	})
}

// path is the URL of a step, and the kind that its body has unless it says otherwise.
func (s *side) path(st *step) (string, kind) {
	target, query, _ := strings.Cut(s.expand(st.target), "?")
	if st.method == "WATCH" {
		query = strings.TrimPrefix(query+"&watch=true", "&")
	}
	var k kind
	if !strings.HasPrefix(target, "/") {
		resource, rest, named := strings.Cut(target, "/")
		k = kinds[resource]
		prefix := "/apis/" + k.apiVersion
		if !strings.Contains(k.apiVersion, "/") {
			prefix = "/api/" + k.apiVersion
		}
		if !k.cluster {
			prefix += "/namespaces/" + s.script.name
		}
		target = prefix + "/" + resource
		if named {
			target += "/" + rest
		}
		if _, sub, ok := strings.Cut(rest, "/"); ok && subresourceKinds[sub].kind != "" {
			k = subresourceKinds[sub]
		}
	}
	u := url.URL{Path: target}
	if query == "" {
		return u.String(), k
	}
	var escaped []string
	for _, pair := range strings.Split(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		escaped = append(escaped, key+"="+url.QueryEscape(value))
	}
	return u.String() + "?" + strings.Join(escaped, "&"), k
}

// body is what a step sends.
func (s *side) body(st *step, k kind) (string, error) {
	text := s.expand(st.body)
	switch {
	case st.raw:
		return text, nil
	case st.protobuf:
		return inProtobuf(text)
	}
	if st.body == "" && st.edit == "" {
		return "", nil
	}
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return "", err
	}
	if st.edit != "" {
		value = merge(s.kept[st.edit], value)
	}
	object, ok := value.(map[string]any)
	if addKind := slices.Contains([]string{"POST", "PUT", "APPLY"}, st.method); ok && addKind && !st.bare &&
		k.kind != "" {
		if _, has := object["apiVersion"]; !has {
			object["apiVersion"] = k.apiVersion
		}
		if _, has := object["kind"]; !has {
			object["kind"] = k.kind
		}
		if st.method == "APPLY" {
			value = merge(map[string]any{"metadata": map[string]any{"name": nameIn(st.target)}}, value)
		}
	}
	data, err := json.Marshal(value)
	return string(data), err
}

// inProtobuf encodes an object that stands there as JSON.
func inProtobuf(text string) (string, error) {
	obj, _, err := deserializer.Decode([]byte(text), nil, nil)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = protobuf.NewSerializer(nil, nil).Encode(obj, &b)
	return b.String(), err
}

// nameIn is the name in a target: of "configmaps/a/status?x=y", it is a.
func nameIn(target string) string {
	path, _, _ := strings.Cut(target, "?")
	_, rest, _ := strings.Cut(path, "/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// merge applies a JSON merge patch.
func merge(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok && patch != nil {
		return patch
	}
	t, _ := target.(map[string]any)
	result := make(map[string]any, len(t)+len(p))
	for k, v := range t {
		result[k] = v
	}
	for k, v := range p {
		if v == nil {
			delete(result, k)
			continue
		}
		result[k] = merge(result[k], v)
	}
	return result
}

func (s *side) request(ctx context.Context, st *step) (*http.Response, error) {
	path, k := s.path(st)
	body, err := s.body(st, k)
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	method := st.method
	contentType := "application/json"
	if p, ok := patches[method]; ok {
		method, contentType = http.MethodPatch, p
	}
	if method == "WATCH" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("User-Agent", "script/1.0")
	for name, values := range st.headers {
		req.Header[name] = values
	}
	return s.client.Do(req)
}

// send performs a request and returns the answer as it came.
func (s *side) send(ctx context.Context, st *step) (answer, error) {
	resp, err := s.request(ctx, st)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	return s.read(resp, st)
}

func (s *side) read(resp *http.Response, st *step) (answer, error) {
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{code: resp.StatusCode, headers: headersOf(resp)}
	if a.body, err = decode(resp.Header.Get("Content-Type"), data); err != nil {
		return a, fmt.Errorf("decode the answer: %w\n%s", err, data)
	}
	if st.as != "" && a.code < http.StatusBadRequest {
		s.kept[st.as] = a.body
	}
	return a, nil
}

// comparedHeaders are those that mean something to a client.
var comparedHeaders = []string{"Content-Type", "Warning", "Retry-After", "Allow", "Cache-Control"}

func headersOf(resp *http.Response) map[string]any {
	headers := map[string]any{}
	for _, name := range comparedHeaders {
		values := resp.Header.Values(name)
		for i, v := range values {
			headers[name+strings.Repeat("'", i)] = v
		}
	}
	return headers
}

// deserializer reads every kind that either server sends in protobuf.
var deserializer = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// decode reads a body of the given content type.
func decode(contentType string, data []byte) (any, error) {
	if len(data) == 0 { // of an answer to HEAD
		return nil, nil
	}
	media, _, _ := mime.ParseMediaType(contentType)
	switch media {
	case "application/json":
		var v any
		err := json.Unmarshal(data, &v)
		return v, err
	case "application/yaml":
		var v any
		err := yaml.Unmarshal(data, &v)
		return v, err
	case "application/vnd.kubernetes.protobuf":
		obj, _, err := deserializer.Decode(data, nil, nil)
		if err != nil {
			return nil, err
		}
		if data, err = json.Marshal(obj); err != nil {
			return nil, err
		}
		var v any
		err = json.Unmarshal(data, &v)
		return v, err
	}
	return string(data), nil
}
