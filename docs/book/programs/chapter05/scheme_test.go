package chapter05

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
)

// decode makes a Go value of an object in JSON.
func decode(known *runtime.Scheme, text []byte) (runtime.Object, error) {
	var says metav1.TypeMeta // apiVersion and kind, and nothing else
	if err := json.Unmarshal(text, &says); err != nil {
		return nil, err
	}
	obj, err := known.New(says.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return obj, json.Unmarshal(text, obj)
}

// encode is the way back. A Go value need not say its kind, since the Scheme knows it by its type.
func encode(known *runtime.Scheme, obj runtime.Object) ([]byte, error) {
	kinds, _, err := known.ObjectKinds(obj)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(kinds[0])
	return json.Marshal(obj)
}

// A Backup is a custom resource: somebody's own kind.
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              BackupSpec `json:"spec"`
}

// BackupSpec is what is asked for.
type BackupSpec struct {
	Schedule string `json:"schedule"`
}

// DeepCopyObject makes a Backup a runtime.Object. A generator usually writes it.
func (b *Backup) DeepCopyObject() runtime.Object {
	out := *b
	out.ObjectMeta = *b.ObjectMeta.DeepCopy()
	return &out
}

var group = schema.GroupVersion{Group: "example.com", Version: "v1"}

func register(known *runtime.Scheme) { known.AddKnownTypes(group, &Backup{}) }

// definition tells the server of the kind, as somebody does by kubectl apply.
func definition() runtime.Object {
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "backups.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "backups", Singular: "backup", Kind: "Backup", ListKind: "BackupList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: group.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: new(true),
					},
				},
			}},
		},
	}
}

// mapper asks a server which kinds it has, and under which paths.
func mapper(t *testing.T, objects ...runtime.Object) meta.RESTMapper {
	t.Helper()
	c, err := discovery.NewDiscoveryClientForConfig(localapi.NewTest(t, objects...).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(c)
	if err != nil {
		t.Fatal(err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups)
}

// goType is the type of an object under the name by which programs import its package, such as corev1.Pod.
func goType(obj runtime.Object) string {
	of := reflect.TypeOf(obj).Elem()
	dir, last := path.Split(of.PkgPath())
	if last == "v1" {
		last = path.Base(dir) + last
	}
	return last + "." + of.Name()
}

// address is the path of the objects of a kind in the namespace shop.
func address(kinds meta.RESTMapper, k schema.GroupVersionKind) (string, error) {
	m, err := kinds.RESTMapping(k.GroupKind(), k.Version)
	if err != nil {
		return "", err
	}
	root := "/apis"
	if k.Group == "" {
		root = "/api"
	}
	return path.Join(root, k.Group, k.Version, "namespaces/shop", m.Resource.Resource), nil
}

// TestChapter05Scheme: what the Scheme and the RESTMapper make of apiVersion and kind.
func TestChapter05Scheme(t *testing.T) {
	builtIn, withBackup := clientscheme.Scheme, runtime.NewScheme()
	register(withBackup)
	bare, defined := mapper(t), mapper(t, definition())
	table := "| the JSON says | the Scheme says | the RESTMapper says |\n|---|---|---|\n"
	for _, row := range []struct {
		version, kind, remark string
		known                 *runtime.Scheme
		kinds                 meta.RESTMapper
		fails                 bool
	}{
		{version: "v1", kind: "Pod", known: builtIn, kinds: bare},
		{version: "apps/v1", kind: "Deployment", known: builtIn, kinds: bare},
		{version: "example.com/v1", kind: "Backup", known: builtIn, kinds: bare, fails: true},
		{
			version: "example.com/v1", kind: "Backup", remark: ", registered and defined", known: withBackup,
			kinds: defined,
		},
	} {
		text := fmt.Appendf(nil, `{"apiVersion": %q, "kind": %q, "metadata": {"name": "web"}}`, row.version, row.kind)
		scheme, resource := "", ""
		obj, err := decode(row.known, text)
		switch {
		case runtime.IsNotRegisteredError(err) && row.fails:
			scheme = "not registered"
		case err != nil || row.fails:
			t.Fatalf("%s: %v", row.kind, err)
		default:
			scheme = "`" + goType(obj) + "`"
			obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			again, err := encode(row.known, obj)
			if err != nil || !strings.Contains(string(again), fmt.Sprintf(`"apiVersion":%q`, row.version)) {
				t.Errorf("back in JSON it is %s, %v", again, err)
			}
		}
		where, err := address(row.kinds, schema.FromAPIVersionAndKind(row.version, row.kind))
		switch {
		case meta.IsNoMatchError(err) && row.fails:
			resource = "no such kind"
		case err != nil || row.fails:
			t.Fatalf("%s: %v", row.kind, err)
		default:
			resource = "`" + where + "`"
		}
		table += fmt.Sprintf("| `%s`, `%s`%s | %s | %s |\n", row.version, row.kind, row.remark, scheme, resource)
	}
	book.Block(t, page, table)
	book.Figure(t, "05-scheme", drawScheme(t, bare))
}

// drawScheme draws what happens to a Deployment in JSON.
func drawScheme(t *testing.T, kinds meta.RESTMapper) *figure.Figure {
	t.Helper()
	obj, err := decode(clientscheme.Scheme, []byte(`{"apiVersion": "apps/v1", "kind": "Deployment"}`))
	if err != nil {
		t.Fatal(err)
	}
	k := obj.GetObjectKind().GroupVersionKind()
	where, err := address(kinds, k)
	if err != nil {
		t.Fatal(err)
	}
	f := figure.New("From JSON to a Go value, and to a path",
		"apiVersion and kind in the JSON are a group, a version and a kind. The Scheme maps these three to a Go type "+
			"and back, the RESTMapper maps them to a resource and its path.", figure.Width, 262)
	f.Rect(20, 84, 202, 92, figure.Plain)
	f.Text(20, 72, "JSON", "name", figure.Plain)
	for i, line := range []string{
		`{"apiVersion": "apps/v1",`, ` "kind": "Deployment",`, ` "metadata": {…},`, ` "spec": {…}}`,
	} {
		class := figure.Muted
		if i < 2 {
			class = figure.Lit
		}
		f.Text(32, 106+19*float64(i), line, "code", class)
	}
	f.Arrow(figure.Lit, figure.Point{X: 226, Y: 130}, figure.Point{X: 256, Y: 130})
	f.Box(260, 90, 140, 80, figure.Lit, "kind", "group "+k.Group, "version "+k.Version, "kind "+k.Kind)
	arrow := func(from, to figure.Point) { f.Arrow(figure.Plain, from, to) }
	arrow(figure.Point{X: 404, Y: 112}, figure.Point{X: 506, Y: 66})
	arrow(figure.Point{X: 506, Y: 80}, figure.Point{X: 404, Y: 126})
	f.Middle(440, 76, "Scheme", "name", figure.Plain)
	f.Box(510, 38, 190, 66, figure.A, "Go type", goType(obj), "obj.Spec.Replicas")
	arrow(figure.Point{X: 404, Y: 150}, figure.Point{X: 506, Y: 188})
	f.Middle(432, 190, "RESTMapper", "name", figure.Plain)
	f.Box(510, 156, 190, 66, figure.C, "resource", path.Base(where), "where to list and watch")
	f.End(700, 242, where, "code", figure.Muted)
	return f
}

// TestChapter05Forms reads one pod in three forms.
func TestChapter05Forms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pod("web-1", "", "", "web")
		p.Namespace, p.Spec.NodeName = "default", "node-1"
		p.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
		factory, err := informer.NewFactory(localapi.NewTest(t, p).RESTConfig(), informer.FactoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		kind := corev1.SchemeGroupVersion.WithKind("Pod")
		typed, err1 := informer.For[*corev1.Pod](factory)
		anyKind, err2 := informer.ForOptions[*unstructured.Unstructured](factory, informer.InformerOptions{Kind: kind})
		names, err3 := informer.ForOptions[*metav1.PartialObjectMetadata](factory, informer.InformerOptions{Kind: kind})
		for _, err := range []error{err1, err2, err3} {
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		var running sync.WaitGroup
		running.Go(func() { _ = factory.Run(ctx) })
		if err := factory.WaitForSync(ctx); err != nil {
			t.Error(err)
		}
		table := "| form | Go type | its label | its node |\n|---|---|---|---|\n"
		row := func(form string, obj metav1.Object, how, node string) {
			table += fmt.Sprintf("| %s | `%s` | %s | %s%s |\n", form, goType(obj.(runtime.Object)),
				obj.GetLabels()["app"], how, node)
		}
		a, _ := typed.Get("default", "web-1")
		row("typed", a, "`p.Spec.NodeName`: ", a.Spec.NodeName)
		b, _ := anyKind.Get("default", "web-1")
		node, _, err := unstructured.NestedString(b.Object, "spec", "nodeName")
		if err != nil {
			t.Error(err)
		}
		row("unstructured", b, "`NestedString(p.Object, \"spec\", \"nodeName\")`: ", node)
		c, _ := names.Get("default", "web-1")
		row("metadata only", c, "", "not there")
		cancel()
		running.Wait()
		book.Block(t, page, table)
	})
}
