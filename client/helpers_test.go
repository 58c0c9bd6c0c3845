package client_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
)

func written(r *Recording) string {
	var all []string
	for _, c := range r.Writes() {
		all = append(all, c.String())
	}
	return strings.Join(all, ", ")
}

func namespaced(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"a": "1", "b": "2"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// The helper sends no request for no changes, one for changes of the object, one for its status, and two for both.
func TestPatchHelperCalls(t *testing.T) {
	label := func(p *corev1.Pod) { p.Labels["a"] = "changed" }
	phase := func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }
	for _, c := range []struct {
		name   string
		change []func(*corev1.Pod)
		want   string
	}{
		{"nothing", nil, ""},
		{"object", []func(*corev1.Pod){label}, "patch default/p"},
		{"status", []func(*corev1.Pod){phase}, "patch status default/p"},
		{"both", []func(*corev1.Pod){label, phase}, "patch default/p, patch status default/p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, client.Options{}, func(w *world) {
				r := record(w.Cluster)
				var pod corev1.Pod
				w.must(r.Get(w.ctx, keyOf(namespaced("p")), &pod))
				helper, err := controllerutil.NewPatchHelper(r, &pod)
				w.must(err)
				for _, change := range c.change {
					change(&pod)
				}
				wanted := pod.DeepCopy()
				if has, err := helper.HasChanges(&pod); err != nil || has != (c.want != "") {
					t.Errorf("has changes: %v, %v", has, err)
				}
				w.must(helper.Patch(w.ctx, &pod))
				w.must(helper.Patch(w.ctx, &pod)) // Nothing is left to send.
				if got := written(r); got != c.want {
					t.Errorf("calls %q, want %q", got, c.want)
				}
				// The answer to the first request does not overwrite the status that the caller wants.
				var stored corev1.Pod
				w.must(other(w).Get(w.ctx, keyOf(&pod), &stored))
				if stored.Status.Phase != wanted.Status.Phase || stored.Labels["a"] != wanted.Labels["a"] ||
					stored.ResourceVersion != pod.ResourceVersion {
					t.Errorf("stored %v %v %s, the caller has %s", stored.Status.Phase, stored.Labels,
						stored.ResourceVersion, pod.ResourceVersion)
				}
			}, namespaced("p"))
		})
	}
}

// Another writer sets a key of a map anew before the patch that removes it. The new value must survive.
func TestPatchHelperDoesNotRemoveWhatOthersPutThere(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		var mine, theirs corev1.Pod
		key := keyOf(namespaced("p"))
		w.must(w.Get(w.ctx, key, &mine))
		helper, err := controllerutil.NewPatchHelper(w.Cluster, &mine)
		w.must(err)
		delete(mine.Labels, "b")

		w.must(other(w).Get(w.ctx, key, &theirs))
		theirs.Labels["b"] = "theirs"
		w.must(other(w).Update(w.ctx, &theirs))
		if err := helper.Patch(w.ctx, &mine); !apierrors.IsConflict(err) {
			t.Errorf("patch: %v", err)
		}
		if _, there := mine.Labels["b"]; there || mine.ResourceVersion == theirs.ResourceVersion {
			t.Error("after an error the object is not as the caller made it")
		}
		w.must(other(w).Get(w.ctx, key, &theirs))
		if theirs.Labels["b"] != "theirs" {
			t.Errorf("labels %v", theirs.Labels)
		}
		// A patch that only adds does not conflict with the changes of others.
		helper, err = controllerutil.NewPatchHelper(w.Cluster, &mine)
		w.must(err)
		mine.Labels["c"] = "3"
		w.must(helper.Patch(w.ctx, &mine))
		if mine.Labels["b"] != "theirs" || mine.Labels["c"] != "3" {
			t.Errorf("labels %v", mine.Labels)
		}
	}, namespaced("p"))
}

// A merge patch replaces a list as a whole. A finalizer that another writer has added meanwhile must survive.
func TestPatchHelperKeepsWhatOthersAddToLists(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		var mine, theirs corev1.Pod
		key := keyOf(namespaced("p"))
		w.must(w.Get(w.ctx, key, &mine))
		helper, err := controllerutil.NewPatchHelper(w.Cluster, &mine)
		w.must(err)
		controllerutil.AddFinalizer(&mine, "example.com/mine")
		w.must(other(w).Get(w.ctx, key, &theirs))
		controllerutil.AddFinalizer(&theirs, "example.com/theirs")
		w.must(other(w).Update(w.ctx, &theirs))
		if err := helper.Patch(w.ctx, &mine); !apierrors.IsConflict(err) {
			t.Errorf("patch: %v", err)
		}
		w.must(other(w).Get(w.ctx, key, &theirs))
		if !controllerutil.ContainsFinalizer(&theirs, "example.com/theirs") {
			t.Errorf("finalizers %v", theirs.Finalizers)
		}
	}, namespaced("p"))
}

// 2⁵³ and 2⁵³+1 are one float64.
func TestPatchHelperTellsLargeIntegersApart(t *testing.T) {
	inWorld(t, client.Options{DryRun: true}, func(w *world) {
		r := record(w.Cluster)
		u := anyMap()
		u.SetNamespace("default")
		u.SetName("a")
		u.Object["n"] = int64(1) << 53
		helper, err := controllerutil.NewPatchHelper(r, u)
		w.must(err)
		u.Object["n"] = int64(1)<<53 + 1
		if has, err := helper.HasChanges(u); err != nil || !has {
			t.Errorf("has changes: %v, %v", has, err)
		}
		data, err := client.MergeFrom(
			func() client.Object { o := u.DeepCopy(); o.Object["n"] = int64(1) << 53; return o }(),
		).Data(u)
		if string(data) != `{"n":9007199254740993}` || err != nil {
			t.Errorf("patch %s, %v", data, err)
		}
	}, configMap("a"))
}

// Patch returns the error of the first patch and then does not send the status. It also returns the error of the
// second.
func TestPatchHelperFailures(t *testing.T) {
	for _, sub := range []string{"", "status"} {
		inWorld(t, client.Options{}, func(w *world) {
			boom := errors.New("boom")
			var calls []string
			c := intercept(w.Cluster,
				func(ctx context.Context, call Call, next func(context.Context) error) error {
					if call.Verb == "patch" {
						calls = append(calls, call.SubResource)
						if call.SubResource == sub {
							return boom
						}
					}
					return next(ctx)
				})
			var pod corev1.Pod
			w.must(c.Get(w.ctx, keyOf(namespaced("p")), &pod))
			helper, err := controllerutil.NewPatchHelper(c, &pod)
			w.must(err)
			pod.Labels["a"], pod.Status.Phase = "changed", corev1.PodRunning
			if err := helper.Patch(w.ctx, &pod); !errors.Is(err, boom) {
				t.Errorf("patch: %v", err)
			}
			if got, want := fmt.Sprint(len(calls)), map[string]string{"": "1", "status": "2"}[sub]; got != want ||
				pod.Status.Phase != corev1.PodRunning {
				t.Errorf("%s calls, want %s; phase %s", got, want, pod.Status.Phase)
			}
			if sub == "status" { // What is left is sent by the next try, once.
				sub = "none"
				w.must(helper.Patch(w.ctx, &pod))
				if len(calls) != 3 {
					t.Errorf("calls %q", calls)
				}
			}
		}, namespaced("p"))
	}
	if _, err := controllerutil.NewPatchHelper(nil, nil); err == nil {
		t.Error("a helper of nothing")
	}
}

func TestFinalize(t *testing.T) {
	const finalizer = "example.com/clean"
	inWorld(t, client.Options{}, func(w *world) {
		cleaned, failing := 0, errors.New("not yet")
		finalize := func() (bool, error) {
			var m corev1.ConfigMap
			if err := w.Get(w.ctx, keyOf(configMap("a")), &m); err != nil {
				return false, err
			}
			return controllerutil.Finalize(w.ctx, w.Cluster, &m, finalizer, func(context.Context) error {
				cleaned++
				return failing
			})
		}
		for range 2 { // The second finds it there.
			if deleting, err := finalize(); deleting || err != nil {
				t.Fatal(deleting, err)
			}
		}
		w.must(w.Delete(w.ctx, configMap("a")))
		if deleting, err := finalize(); !deleting || !errors.Is(err, failing) {
			t.Errorf("cleanup that fails: %v, %v", deleting, err)
		}
		failing = nil
		if deleting, err := finalize(); !deleting || err != nil {
			t.Errorf("cleanup: %v, %v", deleting, err)
		}
		if _, err := finalize(); !apierrors.IsNotFound(err) || cleaned != 2 {
			t.Errorf("%v, cleaned %d times", err, cleaned)
		}
		// An object that is being deleted gets no finalizer. Without the finalizer there is no cleanup.
		var b corev1.ConfigMap
		w.must(w.Delete(w.ctx, configMap("b")))
		w.must(w.Get(w.ctx, keyOf(configMap("b")), &b))
		if deleting, err := controllerutil.Finalize(w.ctx, w.Cluster, &b, finalizer,
			func(context.Context) error { return errors.New("called") }); !deleting || err != nil ||
			len(b.Finalizers) != 1 {
			t.Errorf("another's finalizer: %v, %v, %v", deleting, err, b.Finalizers)
		}
	}, configMap("a"),
		func() *corev1.ConfigMap { b := configMap("b"); b.Finalizers = []string{"example.com/other"}; return b }())
}

func TestOwnerReferences(t *testing.T) {
	owner := configMap("owner")
	owner.UID = "u"
	child := configMap("child")
	for range 2 { // Twice is once.
		if err := controllerutil.SetControllerReference(owner, child, scheme.Scheme); err != nil {
			t.Fatal(err)
		}
	}
	ref := metav1.GetControllerOf(child)
	if ref == nil || len(child.OwnerReferences) != 1 || ref.Kind != "ConfigMap" || ref.APIVersion != "v1" ||
		!*ref.BlockOwnerDeletion {
		t.Errorf("references %+v", child.OwnerReferences)
	}
	second := configMap("second")
	second.UID = "v"
	var owned *controllerutil.AlreadyOwnedError
	if err := controllerutil.SetControllerReference(second, child, scheme.Scheme); !errors.As(err, &owned) ||
		owned.Owner.Name != "owner" {
		t.Errorf("second controller: %v", err)
	}
	err := controllerutil.SetOwnerReference(second, child, scheme.Scheme)
	if err != nil || len(child.OwnerReferences) != 2 || metav1.GetControllerOf(child).Name != "owner" {
		t.Errorf("second owner: %v, %+v", err, child.OwnerReferences)
	}
	elsewhere := configMap("elsewhere")
	elsewhere.Namespace = "other"
	if err := controllerutil.SetOwnerReference(owner, elsewhere, scheme.Scheme); err == nil {
		t.Error("an owner in another namespace")
	}
	if err := controllerutil.SetOwnerReference(configMap("unread"), child, scheme.Scheme); err == nil {
		t.Error("an owner without UID")
	}
	var whole metav1.Object = owner // what code for controller-runtime may have
	if err := controllerutil.SetControllerReference(whole, child, scheme.Scheme); err != nil {
		t.Errorf("an owner of type metav1.Object: %v", err)
	}
	if err := controllerutil.SetOwnerReference(&owner.ObjectMeta, child, scheme.Scheme); err == nil {
		t.Error("an owner that is only metadata")
	}
	if controllerutil.RemoveControllerReference(second, child) ||
		!controllerutil.RemoveOwnerReference(owner, child) || controllerutil.RemoveOwnerReference(owner, child) ||
		len(child.OwnerReferences) != 1 {
		t.Errorf("after removing: %+v", child.OwnerReferences)
	}
}

// An owner was deleted and created again. All references to the former one are replaced, whatever API version they
// have.
func TestOwnerIsCreatedAgain(t *testing.T) {
	yes, no := true, false
	former := metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "old", Controller: &yes, BlockOwnerDeletion: &yes,
	}
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "owner", UID: "other"}
	second := metav1.OwnerReference{APIVersion: "v2", Kind: "ConfigMap", Name: "owner", UID: "older"}
	owner := configMap("owner")
	owner.UID = "new"
	now := former
	now.UID = "new"
	unblocked := now
	unblocked.BlockOwnerDeletion = &no
	for name, c := range map[string]struct {
		set     func(owner, obj metav1.Object, _ *runtime.Scheme, _ ...func(*metav1.OwnerReference)) error
		options []func(*metav1.OwnerReference)
		want    metav1.OwnerReference
	}{
		"controller": {controllerutil.SetControllerReference, nil, now},
		"owner":      {controllerutil.SetOwnerReference, nil, now},
		"controller that does not wait": {
			controllerutil.SetControllerReference,
			[]func(*metav1.OwnerReference){controllerutil.WithBlockOwnerDeletion(false)},
			unblocked,
		},
		"owner that does not wait": {
			controllerutil.SetOwnerReference,
			[]func(*metav1.OwnerReference){controllerutil.WithBlockOwnerDeletion(false)},
			unblocked,
		},
	} {
		child := configMap("child")
		child.OwnerReferences = []metav1.OwnerReference{former, other, second}
		has := func() bool {
			has, err := controllerutil.HasOwnerReference(child.OwnerReferences, owner, scheme.Scheme)
			if err != nil {
				t.Error(err)
			}
			return has
		}
		if has() {
			t.Errorf("%s: a reference to the former owner counts", name)
		}
		if err := c.set(owner, child, scheme.Scheme, c.options...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := []metav1.OwnerReference{c.want, other}
		if !reflect.DeepEqual(child.OwnerReferences, want) || !has() {
			t.Errorf("%s: %+v, want %+v", name, child.OwnerReferences, want)
		}
		if !controllerutil.RemoveControllerReference(owner, child) || len(child.OwnerReferences) != 1 || has() {
			t.Errorf("%s: after removing: %+v", name, child.OwnerReferences)
		}
	}
}

func TestCreateOrUpdateAndPatch(t *testing.T) {
	for name, ensure := range map[string]func(context.Context, client.Client, client.Object,
		func() error) (controllerutil.OperationResult, error){
		"update": controllerutil.CreateOrUpdate, "patch": controllerutil.CreateOrPatch,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, client.Options{}, func(w *world) {
				r := record(w.Cluster)
				value := "1"
				run := func() controllerutil.OperationResult {
					m := configMap("a")
					result, err := ensure(w.ctx, r, m,
						func() error { m.Data = map[string]string{"k": value}; return nil })
					w.must(err)
					return result
				}
				got := []controllerutil.OperationResult{run(), run()}
				value = "2"
				got = append(got, run(), run())
				if fmt.Sprint(got) != "[created unchanged updated unchanged]" || written(r) != "create default/a, "+
					name+" default/a" {
					t.Errorf("%v by %s", got, written(r))
				}
				m := configMap("a")
				if _, err := ensure(w.ctx, r, m, func() error { m.Name = "b"; return nil }); err == nil {
					t.Error("the name may be changed")
				}
			})
		})
	}
}

func TestRetryOnConflict(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		tries := 0
		var m corev1.ConfigMap
		m.Namespace, m.Name = "default", "a"
		w.must(controllerutil.RetryOnConflict(w.ctx, w.Cluster, &m, func() error {
			if tries++; tries <= 3 { // Somebody is faster three times.
				theirs := m.DeepCopy()
				theirs.Data = map[string]string{"theirs": fmt.Sprint(tries)}
				w.must(other(w).Update(w.ctx, theirs))
			}
			if m.Data == nil {
				m.Data = map[string]string{}
			}
			m.Data["ours"] = "yes"
			return nil
		}))
		if tries != 4 || m.Data["theirs"] != "3" || m.Data["ours"] != "yes" {
			t.Errorf("%d tries, data %v", tries, m.Data)
		}
		if err := controllerutil.RetryOnConflict(w.ctx, w.Cluster, configMap("none"),
			func() error { return nil }); !apierrors.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
	}, configMap("a"))
}

// No call stores anything, and the server refuses the same calls as without dry-run.
func TestDryRun(t *testing.T) {
	inWorld(t, client.Options{DryRun: true}, func(w *world) {
		d := w.Cluster
		w.must(d.Create(w.ctx, configMap("new")))
		if err := d.Create(w.ctx, configMap("a")); !apierrors.IsAlreadyExists(err) {
			t.Errorf("create: %v", err)
		}
		var pod corev1.Pod
		w.must(d.Get(w.ctx, keyOf(namespaced("p")), &pod))
		before := pod.DeepCopy()
		pod.Labels["a"] = "changed"
		w.must(d.Update(w.ctx, pod.DeepCopy()))
		w.must(d.Patch(w.ctx, pod.DeepCopy(), client.MergeFrom(before)))
		pod.Status.Phase = corev1.PodRunning
		w.must(d.Status().Update(w.ctx, pod.DeepCopy()))
		w.must(d.Status().Patch(w.ctx, pod.DeepCopy(), client.MergeFrom(before)))
		w.must(d.Delete(w.ctx, configMap("a")))
		w.must(d.DeleteAllOf(w.ctx, configMap(""), client.InNamespace("default")))
		u := anyMap()
		u.SetNamespace("default")
		u.SetName("a")
		u.SetLabels(map[string]string{"x": "y"})
		w.must(d.Apply(w.ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me"),
			client.ForceOwnership))
		if got := w.api.Audit().Writes(); len(got) != 0 {
			t.Errorf("stored: %v", got)
		}
		w.wantNames("a")
	}, configMap("a"), namespaced("p"))
}

func TestApply(t *testing.T) {
	inWorld(t, client.Options{FieldManager: "me"}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		u := anyMap()
		u.SetNamespace("default")
		u.SetName("a")
		u.SetLabels(map[string]string{"x": "y"})
		w.must(w.Apply(w.ctx, client.ApplyConfigurationFromUnstructured(u)))
		if u.GetUID() == "" {
			t.Error("the answer did not come back")
		}
		w.wantNames("a", client.MatchingLabels{"x": "y"})
	})
}
