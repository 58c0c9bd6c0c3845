package informer

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMutationIsNamed (case 25): object, field and handler; a reader's mutation is found when the object is next
// replaced or told, and not blamed on the handler that is told.
func TestMutationIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a")
		var found []string
		inf := NewSharedInformer[object](s,
			Options[object]{OnMutation: func(m Mutation) { found = append(found, m.String()) }})
		_, err := inf.AddHandler(
			Handler[object]{OnAdd: func(o object, _ bool) { metav1.SetMetaDataLabel(&o.ObjectMeta, "app", "web") }},
			HandlerOptions{Name: "careless"},
		)
		must(0, err)
		defer start(t, inf.Run)()
		synctest.Wait()
		if want := []string{
			"handler careless changed ObjectMeta.Labels[app]: (none) -> web of default/a, which is shared: copy it " +
				"first",
		}; !slices.Equal(found, want) {
			t.Errorf("found %q", found)
		}
		o, _ := inf.Get("default", "a")
		o.Generation = 7
		s.put("a")
		synctest.Wait()
		if want := "a reader of the cache changed ObjectMeta.Generation: 1 -> 7 of default/a, which is shared: copy " +
			"it " +
			"first"; len(found) != 2 || found[1] != want {
			t.Errorf("found %q", found)
		}
		o, _ = inf.Get("default", "a")
		o.Generation = 8
		must(inf.AddHandler(Handler[object]{OnAdd: func(object, bool) {}}, HandlerOptions{Name: "innocent"}))
		synctest.Wait()
		if want := "a reader of the cache changed ObjectMeta.Generation: 2 -> 8 of default/a, which is shared: copy " +
			"it " +
			"first"; len(found) != 3 || found[2] != want {
			t.Errorf("found %q", found)
		}
	})
}

func TestDifference(t *testing.T) {
	a := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
		},
	}}}}
	for want, change := range map[string]func(*corev1.Pod){
		"":                                func(*corev1.Pod) {},
		"Spec.Containers[0].Name: c -> d": func(p *corev1.Pod) { p.Spec.Containers[0].Name = "d" },
		"Spec.NodeName:  -> n":            func(p *corev1.Pod) { p.Spec.NodeName = "n" },
	} {
		b := a.DeepCopy()
		change(b)
		if got := difference(reflect.ValueOf(a), reflect.ValueOf(b)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	b := a.DeepCopy()
	b.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2")
	if got := difference(reflect.ValueOf(a), reflect.ValueOf(b)); got == "" {
		t.Error("another quantity is not seen")
	}
	b = a.DeepCopy()
	b.CreationTimestamp = metav1.Unix(1, 0)
	if got := difference(reflect.ValueOf(a), reflect.ValueOf(b)); got == "" {
		t.Error("another time is not seen")
	}
}
