package manager

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
)

// writes notes what this process wrote and its caches may not show yet. It does so only while somebody asks.
type writes struct {
	active atomic.Bool
	// begun and ended count requests that write. Both only rise.
	begun, ended atomic.Uint64

	mu sync.Mutex
	// objects are the last write to each object that was not found in the caches so far.
	objects map[objectKey]unseen
}

// unseen is a write that the caches do not show.
type unseen struct {
	informer.Written
	ask string // where the server tells the version, if the answer did not
}

type objectKey struct {
	resource        schema.GroupResource
	namespace, name string
}

// wrap is a [rest.Config]'s wrapper of transports.
func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return &writesTransport{writes: w, next: next}
}

type writesTransport struct {
	writes *writes
	next   http.RoundTripper
}

// WrappedRoundTripper is how client-go looks through wrappers.
func (t *writesTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements [http.RoundTripper].
func (t *writesTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || !t.writes.active.Load() {
		return t.next.RoundTrip(r)
	}
	t.writes.begun.Add(1)
	defer t.writes.ended.Add(1)
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode >= 300 {
		return response, err
	}
	written, ok := writtenAt(r.URL.Path)
	if !ok || r.URL.Query().Has("dryRun") {
		return response, nil
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	t.writes.note(r.Method, r.URL.Path, written, identify(response.Header.Get("Content-Type"), body))
	return response, nil
}

// note remembers a write until the caches show it.
func (w *writes) note(method, path string, written informer.Written, answer identified) {
	if written.Name == "" {
		written.Name = answer.Name
	}
	if written.Name == "" {
		return // many objects at once, a review: nothing that could be looked for
	}
	written.UID, written.ResourceVersion = answer.UID, answer.ResourceVersion
	u := unseen{Written: written}
	if written.ResourceVersion == "" && method != http.MethodDelete {
		before, after, _ := strings.Cut(path, "/"+written.Resource.Resource+"/")
		name, _, _ := strings.Cut(after, "/")
		u.ask = before + "/" + written.Resource.Resource + "/" + name // a binding, an eviction: the answer does not say
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects[objectKey{written.Resource, written.Namespace, written.Name}] = u
}

// behind returns the writes that the caches do not show.
func (w *writes) behind(ctx context.Context, c rest.Interface, f *informer.Factory) (left []informer.Written) {
	for key, noted := range w.snapshot() {
		u := noted
		if u.ask != "" {
			if u = u.resolve(ctx, c); u.ask != "" {
				left = append(left, u.Written)
				continue
			}
		}
		if !f.Reflects(u.Written) {
			left = append(left, u.Written)
			continue
		}
		w.seen(key, noted)
	}
	return left
}

func (w *writes) snapshot() map[objectKey]unseen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.objects)
}

// seen forgets a write, unless the object was written again.
func (w *writes) seen(key objectKey, u unseen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.objects[key] == u {
		delete(w.objects, key)
	}
}

// resolve asks the server at which version the object is now.
func (u unseen) resolve(ctx context.Context, c rest.Interface) unseen {
	const metadata = runtime.ContentTypeJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	body, err := c.Get().AbsPath(u.ask).SetHeader("Accept", metadata).Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err):
		u.ask = "" // gone: as after a deletion
	case err == nil:
		answer := identify(runtime.ContentTypeJSON, body)
		u.ask, u.UID, u.ResourceVersion = "", answer.UID, answer.ResourceVersion
	}
	return u
}

// forget drops what the caches do not show.
func (w *writes) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.objects)
}

// writtenAt is what the path of a request says. Views of an object whose answers are other objects (a Scale) say nothing of
// their resource version that could not be said of the object.
func writtenAt(path string) (informer.Written, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if i := slices.IndexFunc(parts, func(p string) bool { return p == "api" || p == "apis" }); i >= 0 {
		parts = parts[i:]
	}
	var w informer.Written
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		w.Resource.Group = parts[1]
		parts = parts[3:]
	default:
		return w, false
	}
	if len(parts) >= 3 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		w.Namespace = parts[1]
		parts = parts[2:]
	}
	w.Resource.Resource = parts[0]
	if len(parts) > 1 {
		w.Name = parts[1]
	}
	return w, true
}

// identified is what an answer says of the object in it.
type identified struct {
	Name            string    `json:"name"`
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion"`
}

// identify reads the answer to a write: an object, or a Status that names one. It reads no more of it than it must.
func identify(contentType string, body []byte) identified {
	media, _, err := mime.ParseMediaType(contentType)
	if err == nil && media == runtime.ContentTypeProtobuf {
		return identifyProtobuf(body)
	}
	var object struct {
		Kind     string     `json:"kind"`
		Metadata identified `json:"metadata"`
		Details  identified `json:"details"`
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return identified{}
	}
	if object.Kind == "Status" {
		return object.Details
	}
	return object.Metadata
}

// The numbers of fields in Kubernetes' protobuf.
//
// Source: apimachinery v0.37.2 pkg/runtime/generated.proto Unknown, TypeMeta; pkg/apis/meta/v1/generated.proto ObjectMeta, Status, StatusDetails.
const (
	protoPrefix       = "k8s\x00"
	unknownTypeMeta   = 1
	unknownRaw        = 2
	typeMetaKind      = 2
	objectMeta        = 1
	metaName          = 1
	metaUID           = 5
	metaVersion       = 6
	statusDetails     = 5
	statusDetailsUID  = 6
	statusDetailsName = 1
)

func identifyProtobuf(body []byte) identified {
	body, ok := bytes.CutPrefix(body, []byte(protoPrefix))
	if !ok {
		return identified{}
	}
	raw := field(body, unknownRaw)
	if string(field(field(body, unknownTypeMeta), typeMetaKind)) == "Status" {
		details := field(raw, statusDetails)
		return identified{Name: string(field(details, statusDetailsName)), UID: types.UID(field(details, statusDetailsUID))}
	}
	metadata := field(raw, objectMeta)
	return identified{
		Name: string(field(metadata, metaName)), UID: types.UID(field(metadata, metaUID)),
		ResourceVersion: string(field(metadata, metaVersion)),
	}
}

// field is the first field of that number in a message, if it has bytes.
func field(message []byte, number uint64) []byte {
	const varint, fixed64, lengthPrefixed, fixed32 = 0, 1, 2, 5
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return nil
		}
		message = message[n:]
		size := uint64(0)
		switch tag & 7 {
		case varint:
			_, n := binary.Uvarint(message)
			size = uint64(max(n, 0))
		case fixed64:
			size = 8
		case fixed32:
			size = 4
		case lengthPrefixed:
			if size, n = binary.Uvarint(message); n <= 0 {
				return nil
			}
			message = message[n:]
		}
		if size == 0 && tag&7 != lengthPrefixed || size > uint64(len(message)) {
			return nil
		}
		if tag>>3 == number && tag&7 == lengthPrefixed {
			return message[:size]
		}
		message = message[size:]
	}
	return nil
}
