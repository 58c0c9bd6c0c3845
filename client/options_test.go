package client_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
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
			"namespace":        {client.InNamespace("kube-system"), client.ListOptions{Limit: 10}},
			"labels":           {web, client.ListOptions{Labels: labels.SelectorFromSet(labels.Set{"app": "db"})}},
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
