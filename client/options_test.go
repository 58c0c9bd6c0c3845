package client_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
)

// Options add up in any order: a struct does not undo the options before it.
func TestOptionsAddUp(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		mine := client.WriteOptions{FieldManager: "me"}
		for _, opts := range [][]client.WriteOption{{client.DryRunAll, mine}, {mine, client.DryRunAll}} {
			w.must(w.Create(w.ctx, configMap("dry"), opts...))
		}
		w.wantNames("a b", client.InNamespace("default"), client.ListOptions{Limit: 10})

		web := client.MatchingLabels{"app": "web"}
		for what, opts := range map[string][]client.ListOption{
			"namespace": {client.InNamespace("kube-system"), client.ListOptions{Limit: 10}},
			"labels": {
				web, client.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"app": "db"})},
			},
			"labels and limit": {client.MatchingLabels{"app": "none"}, client.ListOptions{Limit: 10}},
			"fields": {
				client.MatchingFields{"metadata.name": "b"}, web, client.ListOptions{ReadOptions: client.ReadOnly},
			},
		} {
			if got := w.names(opts...); got != "" {
				t.Errorf("%s: %q", what, got)
			}
		}
		w.wantNames("a", client.ListOptions{Namespace: "default"}, client.ListOptions{Limit: 10}, web)

		var a corev1.ConfigMap
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &a, client.Live))
		err := w.Delete(w.ctx, &a, client.OnlyThis(&a), client.Preconditions{ResourceVersion: ptr.To("1")})
		if !apierrors.IsConflict(err) {
			t.Errorf("delete at another version: %v", err)
		}
		another := configMap("a")
		another.UID = "another"
		err = w.Delete(w.ctx, &a, client.OnlyThis(another), client.Preconditions{ResourceVersion: &a.ResourceVersion})
		if !apierrors.IsConflict(err) {
			t.Errorf("delete of another object: %v", err)
		}
	}, configMap("a", "app", "web"), configMap("b"))
}

// A field selector asks the cache for what it asks the server for, or fails.
func TestFieldSelectors(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		name := func(value string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", value) }
		isA := client.MatchingFields{"metadata.name": "a"}
		for what, c := range map[string]struct {
			options []client.ListOption
			want    string
		}{
			"selector":       {[]client.ListOption{client.MatchingFieldsSelector{Selector: name("a")}}, "a"},
			"no selector":    {[]client.ListOption{client.MatchingFieldsSelector{}}, "a b"},
			"option":         {[]client.ListOption{&client.ListOptions{FieldSelector: name("b")}}, "b"},
			"the same twice": {[]client.ListOption{isA, client.ListOptions{FieldSelector: name("a")}}, "a"},
			"two values":     {[]client.ListOption{isA, client.MatchingFields{"metadata.name": "b"}}, ""},
			"everything":     {[]client.ListOption{client.ListOptions{FieldSelector: fields.Everything()}}, "a b"},
		} {
			for _, from := range []client.ReadOptions{{}, client.Live} {
				if got := w.names(append(c.options, client.InNamespace("default"), from)...); got != c.want {
					t.Errorf("%s, %+v: %q, want %q", what, from, got, c.want)
				}
			}
		}
		w.wantNames("", client.ListOptions{FieldSelector: fields.Nothing()})
		not := client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("metadata.name", "a")}
		if got := w.names(not, client.InNamespace("default"), client.Live); got != "b" {
			t.Errorf("an excluded value, from the server: %q", got)
		}
		err := w.List(w.ctx, &corev1.ConfigMapList{}, not)
		if err == nil || !strings.Contains(err.Error(), `no index for "metadata.name!=a": list with client.Live`) {
			t.Errorf("an excluded value, from the cache: %v", err)
		}
	}, configMap("a"), configMap("b"))
}

// A selector that selects nothing has no text. The server must not take it for one that selects all.
func TestSelectorsOfNothing(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		for what, nothing := range map[string]interface {
			client.ListOption
			client.DeleteAllOfOption
		}{
			"labels": client.MatchingLabelsSelector{Selector: labels.Nothing()},
			"label":  client.MatchingLabels{"not a key": "a"},
			"key":    client.HasLabels{"not a key"},
			"fields": client.MatchingFieldsSelector{Selector: fields.Nothing()},
		} {
			for _, from := range []client.ReadOptions{{}, client.Live} {
				if got := w.names(nothing, client.InNamespace("default"), from); got != "" {
					t.Errorf("%s, %+v: %q", what, from, got)
				}
			}
			w.must(w.DeleteAllOf(w.ctx, configMap("a"), nothing, client.InNamespace("default")))
			if got := w.names(client.InNamespace("default")); got != "a b" {
				t.Fatalf("%s: after a deletion of nothing, %q is left", what, got)
			}
		}
		none := client.MatchingFieldsSelector{Selector: fields.Nothing()}
		isA := client.MatchingFields{"metadata.name": "a"}
		for _, opts := range [][]client.ListOption{{none, isA}, {isA, none}, {none, isA, client.Live}} {
			w.wantNames("", opts...)
		}
	}, configMap("a"), configMap("b"))
}

// DeleteOptions add up as an option, too.
func TestDeleteOptions(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		var a corev1.ConfigMap
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &a, client.Live))
		other := &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To[types.UID]("another")}}
		if err := w.Delete(w.ctx, &a, other, client.GracePeriodSeconds(0)); !apierrors.IsConflict(err) {
			t.Errorf("delete of another object: %v", err)
		}
		w.must(w.Delete(w.ctx, &a, client.DryRunAll, &client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
		notA := fields.OneTermNotEqualSelector("metadata.name", "a")
		w.must(w.DeleteAllOf(w.ctx, &a, &client.DeleteAllOfOptions{
			ListOptions:   client.ListOptions{Namespace: "default", FieldSelector: notA},
			DeleteOptions: client.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)},
		}))
		w.wantNames("a", client.InNamespace("default"))
	}, configMap("a"), configMap("b"))
}

// The patches Merge and Apply send the whole object.
func TestWholePatches(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		for name, patch := range map[string]client.Patch{"merge": client.Merge, "apply": client.Apply} {
			cm := configMap(name)
			cm.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			cm.Data = map[string]string{"by": name}
			opts := []client.PatchOption{client.FieldOwner("me")}
			if name == "merge" {
				w.must(w.Create(w.ctx, configMap(name)))
			} else {
				opts = append(opts, client.ForceOwnership)
			}
			w.must(w.Patch(w.ctx, cm, patch, opts...))
			var got corev1.ConfigMap
			w.must(w.Get(w.ctx, keyOf(cm), &got))
			if got.Data["by"] != name {
				t.Errorf("%s: %v", name, got.Data)
			}
		}
	})
}

// Limit and Continue divide a list into pages, in the cache as in the server, and no object is lost.
func TestPages(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		w.must(w.Create(w.ctx, configMap("e")))
		var tokens []string
		for _, from := range []client.ReadOptions{{}, client.Live} {
			var pages []string
			for next, more := "", true; more; more = next != "" {
				var list corev1.ConfigMapList
				w.must(w.List(w.ctx, &list, from, client.Limit(2), client.Continue(next)))
				var names []string
				for _, item := range list.Items {
					names = append(names, item.Name)
				}
				pages = append(pages, fmt.Sprint(names, ptr.Deref(list.RemainingItemCount, 0)))
				if next = list.Continue; next != "" {
					tokens = append(tokens, next)
				}
			}
			if got, want := strings.Join(pages, " "), "[a b] 3 [c d] 1 [e] 0"; got != want {
				t.Errorf("%+v: %s, want %s", from, got, want)
			}
		}
		if len(tokens) != 4 {
			t.Fatalf("tokens %q", tokens)
		}
		if err := w.List(w.ctx, &corev1.ConfigMapList{}, client.Continue(tokens[3])); err == nil ||
			!strings.Contains(err.Error(), "client.Live") {
			t.Errorf("a server's token for the cache: %v", err)
		}
		if err := w.List(w.ctx, &corev1.ConfigMapList{}, client.Live, client.Continue(tokens[0])); err == nil {
			t.Error("the server takes a token of the cache")
		}
	}, configMap("a"), configMap("b"), configMap("c"), configMap("d"))
}
