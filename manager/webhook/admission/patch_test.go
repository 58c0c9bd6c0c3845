package admission_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/manager/webhook/admission"
)

// defaulterOf makes a Defaulter of a function.
type defaulterOf func(*corev1.Pod)

func (f defaulterOf) Default(_ context.Context, pod *corev1.Pod) error {
	f(pod)
	return nil
}

// apply returns what a patch makes of an object.
func apply(t testing.TB, object string, patch []byte) (tree any) {
	t.Helper()
	changed := []byte(object)
	if patch != nil {
		p, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatalf("%s: %v", patch, err)
		}
		if changed, err = p.Apply(changed); err != nil {
			t.Fatalf("%s does not apply to %s: %v", patch, object, err)
		}
	}
	if err := json.Unmarshal(changed, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// The patch of a Defaulter has only the changes that it makes. Fields that the Go type does not have stay, at every
// depth, and so do zeros that the Go type would leave out.
func TestUnknownFieldsSurvive(t *testing.T) {
	containers := func(s string) string {
		return `{"apiVersion":"v1","kind":"Pod","x":1,"metadata":{"name":"a","y":2},"spec":{` + s + `,"z":[3]}}`
	}
	for _, c := range []struct {
		name, before, after string
		change              defaulterOf
	}{
		{
			"nothing", `"hostNetwork":false,"containers":[]`, `"hostNetwork":false,"containers":[]`,
			func(*corev1.Pod) {},
		},
		{
			"a field", `"containers":[{"name":"a","u":1}]`, `"containers":[{"name":"a","u":1}],"nodeName":"n"`,
			func(p *corev1.Pod) { p.Spec.NodeName = "n" },
		},
		{
			"a zero that is written down", `"hostNetwork":false,"priority":null,"hostPID":false`,
			`"hostNetwork":true,"priority":5,"hostPID":false`,
			func(p *corev1.Pod) { p.Spec.HostNetwork, p.Spec.Priority = true, new(int32(5)) },
		},
		{
			"in an element, and one more", `"containers":[{"name":"a","u":1},{"name":"b","u":2}]`,
			`"containers":[{"name":"a","u":1,"image":"i"},{"name":"b","u":2},{"name":"c","resources":{}}]`,
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Image = "i"
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "c"})
			},
		},
		{
			"one less, in front", `"containers":[{"name":"a","u":1},{"name":"b","u":2},{"name":"c","u":3}]`,
			`"containers":[{"name":"b","u":2,"image":"i"},{"name":"c","u":3}]`,
			func(p *corev1.Pod) {
				p.Spec.Containers = p.Spec.Containers[1:]
				p.Spec.Containers[0].Image = "i"
			},
		},
		{
			"turned around", `"containers":[{"name":"a","u":1},{"name":"b","u":2}]`,
			`"containers":[{"name":"b","u":2},{"name":"a","u":1}]`,
			func(p *corev1.Pod) {
				c := p.Spec.Containers
				c[0], c[1] = c[1], c[0]
			},
		},
		{
			"a field less", `"nodeName":"n","securityContext":{"runAsUser":1,"u":2}`, `"securityContext":{"u":2}`,
			func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.SecurityContext.RunAsUser = "", nil },
		},
		{
			"elements without names", `"tolerations":[{"key":"a","u":1},{"key":"b","u":2}]`,
			`"tolerations":[{"key":"a","u":1},{"key":"b","u":2,"value":"v"}]`,
			func(p *corev1.Pod) { p.Spec.Tolerations[1].Value = "v" },
		},
		{
			"a name with a slash", `"nodeSelector":{"a/b~c":"1"}`, `"nodeSelector":{"a/b~c":"2","d/e":"3"}`,
			func(p *corev1.Pod) { p.Spec.NodeSelector["a/b~c"], p.Spec.NodeSelector["d/e"] = "2", "3" },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := containers(c.before)
			got := admission.WithDefaulter(scheme.Scheme, c.change).Handle(t.Context(), request(raw))
			if !got.Allowed {
				t.Fatal(got.Result)
			}
			if (c.before == c.after) != (got.Patch == nil) {
				t.Errorf("patch %s", got.Patch)
			}
			if d := cmp.Diff(apply(t, containers(c.after), nil), apply(t, raw, got.Patch)); d != "" {
				t.Errorf("patch %s: -want +got:\n%s", got.Patch, d)
			}
		})
	}
}

func TestNumbersStayAsWritten(t *testing.T) {
	raw := `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"a":"b"}},"big":12345678901234567890}`
	changed := `{"apiVersion":"v1","kind":"Pod","other":[12345678901234567890, 1.50]}`
	got := admission.PatchResponseFromRaw([]byte(raw), []byte(changed))
	if err := got.Complete(request(raw)); err != nil {
		t.Fatal(err)
	}
	const want = `[{"op":"remove","path":"/big"},{"op":"remove","path":"/metadata"},` +
		`{"op":"add","path":"/other","value":[12345678901234567890,1.50]}]`
	if string(got.Patch) != want {
		t.Errorf("%s, want %s", got.Patch, want)
	}
}

// FuzzPatch: a patch from one object to another turns the first into the second.
func FuzzPatch(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":2,"b":[1,2,3]}`)
	f.Add(`{"a":[1,2,3,{"b":{}}]}`, `{"a":[2,3,{"b":null}]}`)
	f.Add(`{"a/b":{"~":[]}}`, `{"a/b":{"~":[{}]},"":1}`)
	f.Fuzz(func(t *testing.T, from, to string) {
		var a, b map[string]any
		if json.Unmarshal([]byte(from), &a) != nil || json.Unmarshal([]byte(to), &b) != nil || a == nil || b == nil {
			return
		}
		one, _ := json.Marshal(a)
		other, _ := json.Marshal(b)
		got := admission.PatchResponseFromRaw(one, other)
		if err := got.Complete(request("{}")); err != nil {
			t.Fatal(err)
		}
		want, have := apply(t, string(other), nil), apply(t, string(one), got.Patch)
		if d := cmp.Diff(fmt.Sprint(want), fmt.Sprint(have)); d != "" {
			t.Errorf("%s: %s", got.Patch, d)
		}
	})
}
