package controllerruntime

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sent is a request as the server sees it.
type sent struct {
	Method, Path, ContentType string
	Query                     map[string][]string
	Body                      any
}

// sentRequests answers every request with a ConfigMap.
type sentRequests struct{ all []sent }

func (r *sentRequests) RoundTrip(request *http.Request) (*http.Response, error) {
	s := sent{
		Method: request.Method, Path: request.URL.Path, ContentType: request.Header.Get("Content-Type"),
		Query: request.URL.Query(),
	}
	if s.Method == http.MethodDelete {
		delete(s.Query, "dryRun") // It is in the body. Ours is in the query, too.
	}
	if request.Body != nil {
		data, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &s.Body); err != nil {
			s.Body = string(data)
		}
	}
	r.all = append(r.all, s)
	const answer = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"n","name":"a"}}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
		Body: io.NopCloser(strings.NewReader(answer)), ContentLength: -1,
	}, nil
}

// TestRequestsAreThoseOfControllerRuntime sends writes with all of their options through both clients.
func TestRequestsAreThoseOfControllerRuntime(t *testing.T) {
	var clients []client.Client
	var recorders []*sentRequests
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	for _, newClient := range []client.NewClientFunc{NewClient, client.New} {
		r := &sentRequests{}
		config := &rest.Config{Host: "https://localhost", QPS: -1, Transport: r}
		config.ContentType = "application/json"
		o := client.Options{Scheme: scheme.Scheme, Mapper: mapper}
		all, err := NewCache(config, cache.Options{Scheme: scheme.Scheme, Mapper: mapper})
		if err != nil {
			t.Fatal(err)
		}
		o.Cache = &client.CacheOptions{Reader: all}
		c, err := newClient(config, o)
		if err != nil {
			t.Fatal(err)
		}
		clients, recorders = append(clients, c), append(recorders, r)
	}
	if _, ok := clients[0].(*consistent); !ok {
		t.Fatalf("the client is a %T", clients[0])
	}
	ctx, yes := t.Context(), true
	policy, uid, version, grace := metav1.DeletePropagationOrphan, types.UID("u"), "7", int64(3)
	object := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", ResourceVersion: "7"},
			Data:       map[string]string{"k": "v"},
		}
	}
	tree := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "n", "name": "a"},
		}}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	bare := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"},
	}
	deletion := client.DeleteOptions{
		GracePeriodSeconds: &grace, PropagationPolicy: &policy, DryRun: []string{metav1.DryRunAll},
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	}
	patch := client.RawPatch(types.JSONPatchType, []byte(`[]`))
	for name, write := range map[string]func(client.Client) error{
		"create": func(c client.Client) error {
			return c.Create(ctx, object(), client.DryRunAll, client.FieldOwner("me"), client.FieldValidation("Strict"))
		},
		"create raw": func(c client.Client) error {
			return c.Create(ctx, tree(), &client.CreateOptions{Raw: &metav1.CreateOptions{
				FieldManager: "me", FieldValidation: "Warn", DryRun: []string{metav1.DryRunAll},
			}})
		},
		"create with a generated name": func(c client.Client) error {
			m := object()
			m.Name, m.GenerateName = "", "a-"
			return c.Create(ctx, m)
		},
		"create of a node": func(c client.Client) error { return c.Create(ctx, node.DeepCopy()) },
		"update": func(c client.Client) error {
			return c.Update(ctx, object(), client.DryRunAll, client.FieldOwner("me"), client.FieldValidation("Strict"))
		},
		"update with another kind": func(c client.Client) error {
			m := object()
			m.TypeMeta = metav1.TypeMeta{Kind: "Secret"}
			return c.Update(ctx, m)
		},
		"update of a tree": func(c client.Client) error { return c.Update(ctx, tree(), client.FieldOwner("me")) },
		"patch": func(c client.Client) error {
			return c.Patch(ctx, object(), patch, client.DryRunAll, client.FieldOwner("me"), client.ForceOwnership,
				client.FieldValidation("Strict"))
		},
		"patch of metadata": func(c client.Client) error {
			after := bare.DeepCopy()
			after.Labels = map[string]string{"a": "b"}
			return c.Patch(ctx, after, client.MergeFrom(bare), client.FieldOwner("me"))
		},
		"patch, locked": func(c client.Client) error {
			after := object()
			after.Data["k"] = "w"
			lock := client.MergeFromWithOptimisticLock{}
			return c.Patch(ctx, after, client.MergeFromWithOptions(object(), lock))
		},
		"patch, strategic": func(c client.Client) error {
			after := object()
			after.Finalizers = []string{"f"}
			return c.Patch(ctx, after, client.StrategicMergeFrom(object()))
		},
		"patch, merged": func(c client.Client) error {
			return c.Patch(ctx, tree(), client.Merge, &client.PatchOptions{FieldManager: "me", Force: &yes})
		},
		"apply": func(c client.Client) error {
			return c.Apply(ctx, corev1apply.ConfigMap("a", "n"), client.FieldOwner("me"), client.ForceOwnership,
				client.DryRunAll)
		},
		"delete": func(c client.Client) error { return c.Delete(ctx, object(), &deletion) },
		"delete raw": func(c client.Client) error {
			return c.Delete(ctx, bare.DeepCopy(), &client.DeleteOptions{Raw: &metav1.DeleteOptions{
				GracePeriodSeconds: &grace,
			}})
		},
		"delete a node": func(c client.Client) error { return c.Delete(ctx, node.DeepCopy()) },
		"delete all": func(c client.Client) error {
			return c.DeleteAllOf(ctx, object(), &client.DeleteAllOfOptions{
				ListOptions: client.ListOptions{
					Namespace: "n", LabelSelector: labels.SelectorFromSet(labels.Set{"a": "b"}),
					FieldSelector: fields.OneTermEqualSelector("metadata.name", "a"), Limit: 2, Continue: "c",
				},
				DeleteOptions: client.DeleteOptions{GracePeriodSeconds: &grace, PropagationPolicy: &policy},
			})
		},
		"status": func(c client.Client) error {
			return c.Status().Update(ctx, object(), client.DryRunAll, client.FieldOwner("me"))
		},
		"status with a body": func(c client.Client) error {
			return c.Status().Update(ctx, object(), client.WithSubResourceBody(tree()))
		},
		"patch of status": func(c client.Client) error {
			return c.Status().Patch(ctx, object(), patch, &client.SubResourcePatchOptions{
				PatchOptions: client.PatchOptions{FieldManager: "me", Force: &yes, FieldValidation: "Ignore"},
			})
		},
		"creation in a subresource": func(c client.Client) error {
			eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}}
			return c.SubResource("eviction").Create(ctx, object(), eviction, client.FieldOwner("me"), client.DryRunAll)
		},
	} {
		for _, r := range recorders {
			r.all = nil
		}
		err1, err2 := write(clients[0]), write(clients[1])
		if (err1 == nil) != (err2 == nil) || !reflect.DeepEqual(recorders[0].all, recorders[1].all) {
			t.Errorf("%s:\n%+v, %v, want\n%+v, %v", name, recorders[0].all, err1, recorders[1].all, err2)
		}
	}
}
