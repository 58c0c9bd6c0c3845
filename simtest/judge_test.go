package simtest

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// TestNamesWithUIDs: the UID of an owner, and so a name made of it, may depend on what was created before. Only the
// number of such objects counts.
func TestNamesWithUIDs(t *testing.T) {
	const one, two = "job-aaaaaaaa-0000-0000-0000-000000000001", "job-bbbbbbbb-0000-0000-0000-000000000002"
	made := func(names ...string) *run {
		r := &run{end: &end{}}
		for _, name := range names {
			i := id{resource{GroupResource: corev1.Resource("pods")}, "default", name}
			r.changes = append(r.changes, change{id: i, created: true, by: byProgram})
		}
		return r
	}
	for _, test := range []struct {
		name string
		run  *run
		want string // the subject of the finding
	}{
		{"another UID", made(two), ""},
		{"two", made(one, two), "pods default/job-*"},
		{"another name", made("job-2"), "pods default/job-2"},
	} {
		found := ""
		test.run.judgeCreates(made(one), func(_ Rule, subject, _ string) { found = subject })
		if found != test.want {
			t.Errorf("%s: found %q, want %q", test.name, found, test.want)
		}
	}
}

// TestCreatesForOneOwner: the garbage collector's deletes do not balance what was created twice for one owner. A create
// for an owner that is gone is only late.
func TestCreatesForOneOwner(t *testing.T) {
	const first, second = "owner 1", "owner 2"
	pods := resource{GroupResource: corev1.Resource("pods")}
	at := func(uid string, created bool, by author) change {
		c := change{id: id{pods, "default", "web-bbbbb"}, generated: "web-", by: by}
		c.created, c.deleted = created, !created
		if uid != "" {
			c.owner = owner{uid, id{pods, "default", "owner"}}
		}
		return c
	}
	made := func(uid string) change { return at(uid, true, byProgram) }
	collected, evicted := at("", false, byOthers), at(first, false, byUser)
	for _, test := range []struct {
		name      string
		base, run []change
		found     bool
	}{
		{"twice", []change{made(first), collected}, []change{made(first), made(first), collected, collected}, true},
		{
			"again for an owner that is gone",
			[]change{made(first), collected},
			[]change{made(first), collected, made(""), collected},
			false,
		},
		{
			"in place of one that the user deletes",
			[]change{made(first), collected},
			[]change{made(first), evicted, made(first), collected},
			false,
		},
		{
			"twice in place of one that the user deletes",
			[]change{made(first), evicted, made(first), collected},
			[]change{made(first), evicted, made(first), made(first), collected, collected},
			true,
		},
		{
			"for an owner of that name that is otherwise gone before it is seen",
			[]change{made(second), collected},
			[]change{made(first), collected, made(second), collected},
			false,
		},
		{"once, and never without faults", nil, []change{made(first), collected}, false},
	} {
		found := false
		r := &run{changes: test.run}
		r.judgeCreates(&run{changes: test.base, end: &end{}}, func(Rule, string, string) { found = true })
		if found != test.found {
			t.Errorf("%s: found is %t", test.name, found)
		}
	}
}

// TestOwnersNamedByUID: owners whose names are UIDs of different objects are different owners, in all runs.
func TestOwnersNamedByUID(t *testing.T) {
	w := &world{state: &State{objects: map[id]stored{}}, lives: map[id][]life{}, known: map[string]named{}}
	create := func(resource, name, uid string) {
		w.changed(&committed{Change: localapi.Change{
			Resource: corev1.SchemeGroupVersion.WithResource(resource), Namespace: "default", Name: name,
			Object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}},
		}})
	}
	for n, name := range []string{"a", "b"} {
		source := fmt.Sprintf("aaaaaaaa-0000-0000-0000-00000000000%d", n)
		owner := fmt.Sprintf("bbbbbbbb-0000-0000-0000-00000000000%d", n)
		create("configmaps", name, source)
		create("secrets", "of-"+source, owner)
		if got, want := w.known[owner].shown.name, "of-<uid of configmaps default/"+name+">"; got != want {
			t.Errorf("the owner counts as %q, want %q", got, want)
		}
	}
}

// namer keeps a Secret for each ConfigMap with the label "copy". The Secret's name has the UID of the ConfigMap.
type namer struct{ client.Client }

func (c *namer) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var source corev1.ConfigMap
	if err := c.Get(ctx, r.NamespacedName, &source); err == nil && source.Labels["copy"] != "" {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Name + "-" + string(source.UID), Labels: map[string]string{"of": r.Name},
		}}
		return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret))
	} else if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, c.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(r.Namespace),
		client.MatchingLabels{"of": r.Name})
}

// TestMadeAgainByUID: a process that starts on a replica that lags makes once more what a ConfigMap had that is gone,
// and deletes it when it knows better. That is no finding, whether the name has a UID in it or not.
func TestMadeAgainByUID(t *testing.T) {
	s := Scenario{
		Build: func(e *Env) (Program, error) {
			mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{})
			if err != nil {
				return nil, err
			}
			return mgr, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(&namer{mgr.GetClient()})
		},
		Script: func(u *User) {
			u.Create(sources()[0])
			u.Settle()
			u.Delete(sources()[0])
			u.Settle()
		},
	}
	c := newChecker(t, &s, Options{})
	if !c.baseline() {
		t.Fatal(c.found)
	}
	again := 0
	for _, p := range c.staleRestarts().plans {
		r := c.try(p, limits{})
		for _, f := range r.findings {
			t.Errorf("%v: %v", p.Faults, f)
		}
		if sums, _ := r.balance(); len(r.changes) > len(c.base.changes) && len(sums) == 0 {
			again++
		}
	}
	if again == 0 {
		t.Error("in no run the Secret was made again")
	}
}
