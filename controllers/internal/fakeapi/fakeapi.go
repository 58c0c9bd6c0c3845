package fakeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
)

// Server is a server whose answers are functions, like client-go's fake clientset. The reactors are asked in order. The
// last one keeps the objects that are written.
type Server struct {
	clienttesting.Fake
	tracker clienttesting.ObjectTracker
}

// NewServer returns a server without objects.
func NewServer() *Server {
	s := &Server{tracker: clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())}
	s.AddReactor("*", "*", clienttesting.ObjectReaction(s.tracker))
	return s
}

// Tracker returns the objects.
func (s *Server) Tracker() clienttesting.ObjectTracker { return s.tracker }

// NewClient returns a client whose requests the reactors of server answer. If a reactor returns an error that is not an
// API status, the response is Forbidden with the error's text. If it returns [context.Canceled], the request fails with
// that.
func NewClient(server *Server) *client.Cluster {
	config := &rest.Config{Host: "http://fake", QPS: -1, Transport: transport{server}}
	c, err := client.New(config, client.Options{Mapper: mapper()})
	if err != nil {
		panic(err) // The config is a constant.
	}
	return c
}

func mapper() meta.RESTMapper { return testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme) }

type transport struct{ server *Server }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	action, err := actionOf(r)
	if err != nil {
		return nil, err
	}
	obj, err := t.server.Invokes(action, nil)
	status := apierrors.APIStatus(nil)
	switch {
	case errors.As(err, &status):
		s := status.Status()
		return answer(int(s.Code), &s)
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		return answer(http.StatusForbidden, &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: err.Error(),
		})
	}
	if deletion, is := action.(clienttesting.DeleteActionImpl); is &&
		(obj == nil || r.Method == http.MethodDelete && isEmpty(obj)) {
		return answer(http.StatusOK, deleted(deletion))
	}
	return answer(http.StatusOK, obj)
}

func isEmpty(obj runtime.Object) bool {
	m, err := meta.Accessor(obj)
	return err != nil || m.GetName() == ""
}

// deleted returns a server's answer to a successful delete.
func deleted(d clienttesting.DeleteActionImpl) *metav1.Status {
	s := &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{Name: d.Name}}
	if p := d.DeleteOptions.Preconditions; p != nil && p.UID != nil {
		s.Details.UID = *p.UID
	}
	return s
}

// actionOf converts a request to the action that a reactor sees.
func actionOf(r *http.Request) (clienttesting.Action, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	gvr, namespace, name, sub := read(r.URL.Path)
	switch r.Method {
	case http.MethodGet:
		return clienttesting.NewGetAction(gvr, namespace, name), nil
	case http.MethodPatch:
		format := types.PatchType(r.Header.Get("Content-Type"))
		return clienttesting.NewPatchSubresourceAction(gvr, namespace, name, format, body, sub...), nil
	case http.MethodDelete:
		var o metav1.DeleteOptions
		err := json.Unmarshal(body, &o)
		o.TypeMeta = metav1.TypeMeta{}
		return clienttesting.NewDeleteActionWithOptions(gvr, namespace, name, o), err
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as a clientset leaves it
	switch {
	case r.Method == http.MethodPost:
		return clienttesting.NewCreateAction(gvr, namespace, obj), nil
	case len(sub) > 0:
		return clienttesting.NewUpdateSubresourceAction(gvr, sub[0], namespace, obj), nil
	case r.Method == http.MethodPut:
		return clienttesting.NewUpdateAction(gvr, namespace, obj), nil
	}
	return nil, fmt.Errorf("fakeapi: unexpected %s %s", r.Method, r.URL)
}

// read reads a path like /apis/apps/v1/namespaces/ns/replicasets/name/status.
func read(path string) (gvr schema.GroupVersionResource, namespace, name string, sub []string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "apis" {
		gvr.Group = parts[1]
		parts = parts[1:]
	}
	gvr.Version, namespace, gvr.Resource = parts[1], parts[3], parts[4]
	if len(parts) > 5 {
		name, sub = parts[5], parts[6:]
	}
	return gvr, namespace, name, sub
}

// answer returns a response with obj as its body, and sets the kind in it.
func answer(code int, obj runtime.Object) (*http.Response, error) {
	obj = obj.DeepCopyObject()
	if kinds, _, err := scheme.Scheme.ObjectKinds(obj); err == nil {
		obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	body, err := json.Marshal(obj)
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code),
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, err
}
