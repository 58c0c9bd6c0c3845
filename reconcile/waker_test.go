package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/reconcile"
)

// Cases: a reconcile writes while the watch is cut, and another client undoes the write before the next list. That list
// does not show the written state, so no event comes for it. The key runs again once all the same, with the cause
// Missed. If the list shows exactly the written state, its event is enough.
func TestMissedWriteWakesWhoKnowsIt(t *testing.T) {
	child := &corev1.Secret{}
	child.Namespace, child.Name = "default", "child"
	for _, v := range []struct {
		name string
		// there reports whether the cache has the child at the start, without the label.
		there bool
		// undo is what the other client does.
		undo func(ctx context.Context, them client.Client, child *corev1.Secret) error
		want []string
	}{
		{"created and deleted", false, deleteChild, []string{"configmaps Add", "secrets Missed"}},
		{"adopted and deleted", true, deleteChild, []string{"configmaps Add", "secrets Missed"}},
		{"created and stripped", false, stripChild, []string{"configmaps Add", "secrets Missed"}},
		{"created and replaced", false, replaceChild, []string{"configmaps Add", "secrets Missed"}},
		{"adopted and replaced", true, replaceChild, []string{"configmaps Add", "secrets Missed"}},
		{"created and left alone", false, nil, []string{"configmaps Add"}},
		{"adopted and left alone", true, nil, []string{"configmaps Add"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			var cut atomic.Bool
			var why []string
			inProcess(t, cutSecrets(&cut),
				func(p *process) (reconcile.Reconciler[reconcile.Request], reconcile.Options[reconcile.Request]) {
					return ensuresChild(p, &why), reconcile.Options[reconcile.Request]{}
				}, func(ctx context.Context, p *process) {
					them := others(t, p)
					must(t, p.List(ctx, &corev1.SecretList{})) // The first read makes the cache.
					if v.there {
						must(t, them.Create(ctx, child.DeepCopy()))
					}
					synctest.Wait()
					cut.Store(true)
					must(t, them.Create(ctx, configMap("owner")))
					synctest.Wait()
					var made corev1.Secret
					must(t, them.Get(ctx, client.ObjectKeyFromObject(child), &made))
					if made.Labels["of"] != "owner" {
						t.Fatalf("not made: %+v", made)
					}
					if v.undo != nil {
						must(t, v.undo(ctx, them, &made))
					}
					must(t, p.api.Compact(ctx))
					time.Sleep(time.Minute)
					cut.Store(false)
					time.Sleep(24 * time.Hour)
					synctest.Wait()
					must(t, them.Get(ctx, client.ObjectKeyFromObject(child), &made))
					if !slices.Equal(why, v.want) || made.Labels["of"] != "owner" {
						t.Errorf("ran because of %v, want %v; the child has the labels %v", why, v.want, made.Labels)
					}
					if n := p.Stats().Expected; n != 0 {
						t.Errorf("%d writes are still expected", n)
					}
				})
		})
	}
}

// ensuresChild returns a reconciler that creates the child, or adopts it if it exists.
func ensuresChild(p *process, why *[]string) reconcile.Reconciler[reconcile.Request] {
	return reconcile.Func[reconcile.Request](func(ctx context.Context,
		key reconcile.Request,
	) (reconcile.Result, error) {
		if key.Name != "owner" {
			return reconcile.Result{}, nil
		}
		for _, c := range reconcile.Causes(ctx) {
			*why = append(*why, fmt.Sprintf("%s %s", c.Source, c.Event))
		}
		child := &corev1.Secret{}
		child.Namespace, child.Name = key.Namespace, "child"
		_, err := controllerutil.CreateOrPatch(ctx, p, child, func() error {
			child.Labels = map[string]string{"of": key.Name}
			return nil
		})
		return reconcile.Result{}, err
	})
}

// cutSecrets ends the watches of Secrets while cut is set.
func cutSecrets(cut *atomic.Bool) gate.Gate {
	return gate.Funcs{OnFrame: func(_ context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
		if cut.Load() && r.Resource == "secrets" {
			return gate.Verdict{Action: gate.Close}
		}
		return gate.Verdict{}
	}}
}

func others(t *testing.T, p *process) client.Client {
	t.Helper()
	them, err := client.New(p.api.RESTConfig(), client.Options{})
	must(t, err)
	return them
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func deleteChild(ctx context.Context, them client.Client, child *corev1.Secret) error {
	return them.Delete(ctx, child)
}

func stripChild(ctx context.Context, them client.Client, child *corev1.Secret) error {
	before := child.DeepCopy()
	child.Labels = nil
	return them.Patch(ctx, child, client.MergeFrom(before))
}

func replaceChild(ctx context.Context, them client.Client, child *corev1.Secret) error {
	if err := them.Delete(ctx, child); err != nil {
		return err
	}
	other := &corev1.Secret{}
	other.Namespace, other.Name = child.Namespace, child.Name
	return them.Create(ctx, other)
}

// Case: a controller that has read the write of another controller of the process is woken as well. It has read the
// write with Get, or with a list that selects the object. A controller whose list does not select it is not woken.
func TestMissedWriteWakesOtherReaders(t *testing.T) {
	var cut atomic.Bool
	var why []string
	inProcess(t, cutSecrets(&cut),
		func(p *process) (reconcile.Reconciler[reconcile.Request], reconcile.Options[reconcile.Request]) {
			return reconcile.Func[reconcile.Request](func(ctx context.Context,
				key reconcile.Request,
			) (reconcile.Result, error) {
				for _, c := range reconcile.Causes(ctx) {
					if c.Event == "Missed" {
						why = append(why, key.Name)
					}
				}
				child := &corev1.Secret{}
				child.Namespace, child.Name, child.Labels = key.Namespace, "child", map[string]string{"of": "writer"}
				switch key.Name {
				case "writer":
					err := p.Create(ctx, child)
					return reconcile.Result{}, client.IgnoreAlreadyExists(err)
				case "gets":
					return reconcile.Result{},
						client.IgnoreNotFound(p.Get(ctx, client.ObjectKeyFromObject(child), child))
				case "lists":
					return reconcile.Result{}, p.List(ctx, &corev1.SecretList{}, client.MatchingLabels{"of": "writer"})
				case "lists-others":
					return reconcile.Result{}, p.List(ctx, &corev1.SecretList{}, client.MatchingLabels{"of": "nobody"})
				}
				return reconcile.Result{}, nil
			}), reconcile.Options[reconcile.Request]{}
		}, func(ctx context.Context, p *process) {
			them := others(t, p)
			must(t, p.List(ctx, &corev1.SecretList{}))
			synctest.Wait()
			cut.Store(true)
			for _, name := range []string{"writer", "gets", "lists", "lists-others"} {
				must(t, them.Create(ctx, configMap(name)))
				synctest.Wait()
			}
			child := &corev1.Secret{}
			child.Namespace, child.Name = "default", "child"
			must(t, them.Delete(ctx, child))
			must(t, p.api.Compact(ctx))
			time.Sleep(time.Minute)
			cut.Store(false)
			time.Sleep(time.Hour)
			synctest.Wait()
			slices.Sort(why)
			if got := strings.Join(why, " "); got != "gets lists writer" {
				t.Errorf("woken are %q", got)
			}
		})
}
