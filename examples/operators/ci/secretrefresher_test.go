package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/secretrefresher"
	"github.com/flyball-dev/flyball/localapi"
)

// refresherWorld is a cluster, its refresher and, unless a test makes the secrets itself, its minter.
type refresherWorld struct {
	*World
	o      secretrefresher.Options
	minter bool
}

func inRefresher(t *testing.T, test func(w *refresherWorld)) {
	t.Helper()
	In(t, func(w *World) {
		test(&refresherWorld{World: w, o: secretrefresher.Options{Namespaces: []string{"team"}, RemoveOld: true}})
	}, Hub)
}

func (w *refresherWorld) start() (stop func()) {
	w.Helper()
	f := w.Fleet(secretrefresher.Caches()...)
	w.Must(secretrefresher.Add(f.Hub, w.o))
	if w.minter {
		w.Must(secretrefresher.AddMinter(f.Hub, w.o))
	}
	return w.Go(f.Run)
}

// secret seeds a secret of a service account.
func (w *refresherWorld) secret(account, name string, age time.Duration, kind corev1.SecretType,
	annotations ...string,
) {
	w.Helper()
	s := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name,
			CreationTimestamp: metav1.NewTime(time.Now().Add(-age)), Annotations: map[string]string{
				corev1.ServiceAccountNameKey: account, corev1.ServiceAccountUIDKey: "uid-" + account,
			},
		},
		Type: kind,
	}
	for i := 0; i+1 < len(annotations); i += 2 {
		s.Annotations[annotations[i]] = annotations[i+1]
	}
	w.Seed(Hub, s)
}

// account seeds a service account that refers to secrets, both ways; of those with a "t" only as a token.
func (w *refresherWorld) account(name string, secrets ...string) {
	w.Helper()
	sa := &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-" + name)},
	}
	for _, s := range secrets {
		if !strings.HasPrefix(s, "t") {
			sa.ImagePullSecrets = append(sa.ImagePullSecrets, corev1.LocalObjectReference{Name: s})
		}
		sa.Secrets = append(sa.Secrets, corev1.ObjectReference{Name: s})
	}
	w.Seed(Hub, sa)
}

// describe is what the service account refers to, and which of its secrets there are.
func (w *refresherWorld) describe(account string) string {
	w.Helper()
	sa := Get(w.World, Hub, "team", account, &corev1.ServiceAccount{})
	var pull, secrets, there []string
	for _, r := range sa.ImagePullSecrets {
		pull = append(pull, r.Name)
	}
	for _, r := range sa.Secrets {
		secrets = append(secrets, r.Name)
	}
	var list corev1.SecretList
	w.Must(w.Client.List(w.Ctx, &list, client.InNamespace("team")))
	for _, s := range list.Items {
		if s.Annotations[corev1.ServiceAccountNameKey] == account {
			there = append(there, s.Name)
		}
	}
	slices.Sort(there)
	return fmt.Sprintf("pull %v secrets %v there %v", pull, secrets, there)
}

func (w *refresherWorld) want(account, want string) {
	w.Helper()
	if got := w.describe(account); got != want {
		w.Errorf("%s: %s, want %s", account, got, want)
	}
}

// Source: the rows of TestReconcile of openshift/ci-tools.
func TestRefresh(t *testing.T) {
	inRefresher(t, func(w *refresherWorld) {
		dockercfg := corev1.SecretTypeDockercfg
		// Rotated, and old ones are removed. The new one was made by somebody before.
		w.account("cleaned", "old", "new", "t0")
		w.secret("cleaned", "old", 61*day, dockercfg)
		w.secret("cleaned", "new", day, dockercfg)
		w.secret("cleaned", "t0", 400*day, corev1.SecretTypeServiceAccountToken)
		w.secret("cleaned", "t-unused", 400*day, corev1.SecretTypeServiceAccountToken)
		// Rotated, and not old enough to be removed: that comes later.
		w.account("rotated", "r-old", "r-new")
		w.secret("rotated", "r-old", 59*day+time.Hour, dockercfg)
		w.secret("rotated", "r-new", 0, dockercfg)
		// Up to date.
		w.account("current", "c")
		w.secret("current", "c", 29*day, dockercfg)
		// Young, but said to be too old.
		w.account("annotated", "a-short", "a-new")
		w.secret("annotated", "a-short", day, dockercfg, "serviaccount-secret-rotator.openshift.io/delete-after",
			time.Now().Add(-time.Hour).Format(time.RFC3339))
		w.secret("annotated", "a-new", 0, dockercfg)
		// A reference that leads nowhere.
		w.account("dangling", "d-gone", "d-new")
		w.secret("dangling", "d-new", 0, dockercfg)
		// Nobody gives it a new one: what there is stays.
		w.account("waiting", "w-old")
		w.secret("waiting", "w-old", 100*day, dockercfg)
		stop := w.start()
		time.Sleep(time.Minute)
		w.want("cleaned", "pull [new] secrets [new t0] there [new t-unused t0]")
		w.want("rotated", "pull [r-new] secrets [r-new] there [r-new r-old]")
		w.want("current", "pull [c] secrets [c] there [c]")
		w.want("annotated", "pull [a-new] secrets [a-new] there [a-new]")
		w.want("dangling", "pull [d-new] secrets [d-new] there [d-new]")
		w.want("waiting", "pull [] secrets [] there [w-old]")
		w.Quiet(22 * time.Hour)
		time.Sleep(time.Hour) // 23 hours: what was not old enough is now
		w.want("rotated", "pull [r-new] secrets [r-new] there [r-new]")
		w.want("current", "pull [c] secrets [c] there [c]")
		time.Sleep(time.Hour)
		w.want("current", "pull [] secrets [] there [c]")
		stop()
	})
}

// Without being asked to, nobody deletes secrets.
func TestKeepOld(t *testing.T) {
	inRefresher(t, func(w *refresherWorld) {
		w.o.RemoveOld = false
		w.account("cleaned", "old", "new")
		w.secret("cleaned", "old", 61*day, corev1.SecretTypeDockercfg)
		w.secret("cleaned", "new", day, corev1.SecretTypeDockercfg)
		stop := w.start()
		time.Sleep(time.Minute)
		w.want("cleaned", "pull [new] secrets [new] there [new old]")
		stop()
	})
}

// Namespaces that are not enabled, and accounts that are ignored, are left alone.
func TestFilter(t *testing.T) {
	inRefresher(t, func(w *refresherWorld) {
		w.o.IgnoreAccounts = []string{"team/ignored"}
		w.account("ignored", "old")
		w.secret("ignored", "old", 61*day, corev1.SecretTypeDockercfg)
		w.Seed(Hub, &corev1.ServiceAccount{
			TypeMeta:         metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta:       metav1.ObjectMeta{Namespace: "ocp", Name: "elsewhere"},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "gone"}},
		})
		stop := w.start()
		w.Quiet(day)
		stop()
	})
}

// Seventy days with the minter, whose process runs for a minute every third day: there is always one pull secret,
// each is referred to for 30 days and there for 60.
func TestSeventyDays(t *testing.T) {
	inRefresher(t, func(w *refresherWorld) {
		w.minter = true
		w.Create(Hub, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "builder"}})
		var first string
		for n := 0; n < 70; n += 3 {
			stop := w.start()
			time.Sleep(time.Minute)
			stop()
			sa := Get(w.World, Hub, "team", "builder", &corev1.ServiceAccount{})
			if len(sa.ImagePullSecrets) != 1 || len(sa.Secrets) != 1 ||
				sa.ImagePullSecrets[0].Name != sa.Secrets[0].Name {
				t.Fatalf("on day %d: %+v", n, sa)
			}
			current := Get(w.World, Hub, "team", sa.Secrets[0].Name, &corev1.Secret{})
			if age := time.Since(current.CreationTimestamp.Time); age > 30*day+time.Minute {
				t.Errorf("on day %d the current one is %v old", n, age)
			}
			if n == 0 {
				first = current.Name
			}
			if there := w.Exists(Hub, "team", first, &corev1.Secret{}); there != (n < 60) {
				t.Errorf("on day %d the first one is there: %t", n, there)
			}
			time.Sleep(3*day - time.Minute)
		}
		if n := w.Writes(Hub, "create", "secrets"); n != 3 {
			t.Errorf("%d secrets in seventy days", n)
		}
		stop := w.start()
		time.Sleep(time.Second)
		// Somebody deletes the secret: its event leads to another.
		sa := Get(w.World, Hub, "team", "builder", &corev1.ServiceAccount{})
		w.Must(
			w.Client.Delete(w.Ctx,
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: sa.Secrets[0].Name}}),
		)
		time.Sleep(time.Second)
		after := Get(w.World, Hub, "team", "builder", &corev1.ServiceAccount{})
		if len(after.ImagePullSecrets) != 1 || after.ImagePullSecrets[0].Name == sa.ImagePullSecrets[0].Name {
			t.Errorf("after a deletion: %+v", after.ImagePullSecrets)
		}
		stop()
	})
}

// A minter dies between the secret and the service account: the next one binds that secret. The answer is lost: there
// is no second.
func TestMinterCrash(t *testing.T) {
	inRefresher(t, func(w *refresherWorld) {
		w.minter = true
		w.Create(Hub, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "builder"}})
		remove := w.Clusters[Hub].Intercept(
			localapi.Rule{Verb: "update", Resource: "serviceaccounts", Err: context.DeadlineExceeded},
		)
		stop := w.start()
		time.Sleep(10 * time.Second)
		stop()
		remove()
		stop = w.start()
		time.Sleep(time.Minute)
		if n := w.Writes(Hub, "create", "secrets"); n != 1 {
			t.Errorf("%d secrets", n)
		}
		if sa := Get(w.World, Hub, "team", "builder",
			&corev1.ServiceAccount{}); len(sa.ImagePullSecrets) != 1 {
			t.Errorf("the service account has %v", sa.ImagePullSecrets)
		}
		stop()
	})
}

// runs makes a Deployment, a StatefulSet and a DaemonSet of a name whose Pods run as an account.
func (w *refresherWorld) runs(name, account string, annotations map[string]string) {
	w.Helper()
	m := metav1.ObjectMeta{Namespace: "team", Name: name, Annotations: annotations}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}}
	template.Spec.ServiceAccountName = account
	template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	w.Create(Hub,
		&appsv1.Deployment{ObjectMeta: m, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}})
	w.Create(Hub,
		&appsv1.StatefulSet{
			ObjectMeta: m,
			Spec:       appsv1.StatefulSetSpec{Selector: selector, Template: template, ServiceName: name},
		})
	w.Create(Hub,
		&appsv1.DaemonSet{ObjectMeta: m, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}})
}

// rolledTo returns the pull secrets that the templates of that name were last rolled to.
func (w *refresherWorld) rolledTo(name string) string {
	w.Helper()
	var all []string
	for _, t := range []*corev1.PodTemplateSpec{
		&Get(w.World, Hub, "team", name, &appsv1.Deployment{}).Spec.Template,
		&Get(w.World, Hub, "team", name, &appsv1.StatefulSet{}).Spec.Template,
		&Get(w.World, Hub, "team", name, &appsv1.DaemonSet{}).Spec.Template,
	} {
		all = append(all, t.Annotations[secretrefresher.PullSecretsAnnotation])
	}
	return strings.Join(all, " ")
}

// What asks for it is rolled when its service account has other pull secrets, once, and not while it has none;
// nothing else is.
func TestRoll(t *testing.T) {
	inRefresher(t, func(w *refresherWorld) {
		w.o.IgnoreAccounts = []string{"team/ignored"}
		asks := map[string]string{secretrefresher.RollAnnotation: "true"}
		for _, name := range []string{"builder", "ignored"} {
			w.account(name, "one-of-"+name)
			w.secret(name, "one-of-"+name, 29*day, corev1.SecretTypeDockercfg)
		}
		w.runs("asks", "builder", asks)
		w.runs("does-not", "builder", nil)
		w.runs("of-ignored", "ignored", asks)
		stop := w.start()
		defer stop()
		check := func(when, want string) {
			w.Helper()
			time.Sleep(time.Minute)
			if got := w.rolledTo("asks"); got != want {
				w.Errorf("%s: rolled to %q, want %q", when, got, want)
			}
			if got := w.rolledTo("does-not") + w.rolledTo("of-ignored"); strings.TrimSpace(got) != "" {
				w.Errorf("%s: what did not ask, or runs as an account that is left alone, was rolled to %q", when, got)
			}
			w.Quiet(time.Hour)
		}
		check("at first", "one-of-builder one-of-builder one-of-builder")
		time.Sleep(day)
		check("without a pull secret", "one-of-builder one-of-builder one-of-builder")
		w.secret("builder", "two-of-builder", 0, corev1.SecretTypeDockercfg)
		sa := Get(w.World, Hub, "team", "builder", &corev1.ServiceAccount{})
		sa.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "two-of-builder"}}
		w.Must(w.Client.Update(w.Ctx, sa))
		check("with a new one", "two-of-builder two-of-builder two-of-builder")
	})
}
