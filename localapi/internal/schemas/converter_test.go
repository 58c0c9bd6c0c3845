package schemas

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

var update = flag.Bool("update", false, "write schemas.yaml anew")

// TestSchemas compares the schemas with those of client-go: a newer client-go may have others. The test writes them
// with -update.
func TestSchemas(t *testing.T) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	value, err := applyconfigurations.NewTypeConverter(clientscheme.Scheme).ObjectToTyped(pod)
	if err != nil {
		t.Fatal(err)
	}
	want := value.Schema()
	if *update {
		out, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("schemas.yaml", out, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Skip("run the test again")
	}
	if len(texts()) != len(want.Types) {
		t.Errorf("%d types, client-go has %d", len(texts()), len(want.Types))
	}
	for _, w := range want.Types {
		got, err := reachable(w.Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w, got[0], cmpopts.IgnoreUnexported(schema.Map{})); diff != "" {
			t.Errorf("%s differs (go test ./localapi/internal/schemas -update):\n%s", w.Name, diff)
		}
		for _, g := range got {
			if _, found := want.FindNamedType(g.Name); !found {
				t.Errorf("%s: %s is no type", w.Name, g.Name)
			}
		}
	}
}

// TestConverter compares an object's field sets with those that client-go's converter finds.
func TestConverter(t *testing.T) {
	ours, theirs := NewConverter(clientscheme.Scheme), applyconfigurations.NewTypeConverter(clientscheme.Scheme)
	for _, obj := range []runtime.Object{
		&corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: []metav1.OwnerReference{{UID: "u"}}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "c", Ports: []corev1.ContainerPort{{ContainerPort: 80, Protocol: "TCP"}},
			}}},
		},
		&appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			Spec:     appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
			Status:   appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: "Available"}}},
		},
	} {
		sets := map[*fieldpath.Set]bool{}
		for range 2 { // as parsed, and as kept
			for _, c := range []managedfields.TypeConverter{ours, theirs} {
				value, err := c.ObjectToTyped(obj)
				if err != nil {
					t.Fatal(err)
				}
				set, err := value.ToFieldSet()
				if err != nil {
					t.Fatal(err)
				}
				for other := range sets {
					if !set.Equals(other) {
						t.Errorf("%T: %s, want %s", obj, set, other)
					}
				}
				sets[set] = true
			}
		}
	}
	if _, err := ours.ObjectToTyped(&corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Unknown"}}); err == nil {
		t.Error("a kind that is not in the scheme was converted")
	}
}
