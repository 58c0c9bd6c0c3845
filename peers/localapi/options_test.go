package localapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"
)

// TestDeleteOptions sends the options of deletes to both servers, in every media type and as kinds of several groups.
// The options are invalid: an answer that names the mistake shows that the server has read them.
func TestDeleteOptions(t *testing.T) {
	p := newPair(t, &script{name: "delete-options"}, nil)
	asked := map[int]int{}
	for _, mediaType := range []string{
		runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR, "",
		"text/plain",
	} {
		for _, gv := range []schema.GroupVersion{
			{},
			{Version: "v1"},
			{Group: "meta.k8s.io", Version: "v1"},
			{Group: "meta.k8s.io", Version: "v2"},
			{Group: "apps", Version: "v1"},
			{Group: "apps", Version: "v2"},
			{Group: "example.com", Version: "v1alpha1"},
		} {
			for _, kind := range []string{"DeleteOptions", "PatchOptions", "Pod", ""} {
				body := optionsIn(t, mediaType, gv.WithKind(kind))
				for _, path := range []string{
					"/api/v1/namespaces/delete-options/configmaps/none", "/api/v1/namespaces/delete-options/configmaps",
					"/apis/apps/v1/namespaces/delete-options/deployments/none",
					"/apis/apps/v1/namespaces/delete-options/deployments",
				} {
					want, have := p.real.delete(t, path, mediaType, body), p.ours.delete(t, path, mediaType, body)
					asked[want.code]++
					if want != have {
						t.Errorf("%s with options of %v in %q:\nkube-apiserver %+v\nlocalapi       %+v", path,
							gv.WithKind(kind), mediaType, want, have)
					}
				}
			}
		}
	}
	t.Logf("deletes by the code of the answer: %v", asked)
}

// optionsIn is the body of a delete that is not valid.
func optionsIn(t *testing.T, mediaType string, kind schema.GroupVersionKind) []byte {
	t.Helper()
	o := &metav1.DeleteOptions{DryRun: []string{"Some"}}
	o.SetGroupVersionKind(kind)
	var data []byte
	var err error
	switch mediaType {
	case runtime.ContentTypeYAML:
		data, err = yaml.Marshal(o)
	case runtime.ContentTypeCBOR:
		data, err = direct.Marshal(o)
	case runtime.ContentTypeProtobuf:
		var raw []byte
		if raw, err = o.Marshal(); err == nil {
			var b bytes.Buffer
			err = protobuf.NewSerializer(nil, nil).Encode(&runtime.Unknown{
				TypeMeta: runtime.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}, Raw: raw,
			}, &b)
			data = b.Bytes()
		}
	default:
		data, err = json.Marshal(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// delete sends a DELETE with a body.
func (s *side) delete(t *testing.T, path, mediaType string, body []byte) verdict {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.base+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	if err := json.Unmarshal(data, &status); err != nil {
		status.Message = fmt.Sprintf("%s (%v)", data, err)
	}
	return verdict{code: resp.StatusCode, message: status.Message}
}
