package manager_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
)

// judge compares what there is with what there should be.
func (c *chaos) judge() {
	var parents appsv1.ReplicaSetList
	var secrets corev1.SecretList
	var records corev1.ConfigMapList
	ctx := c.t.Context()
	c.must(c.admin.List(ctx, &parents))
	c.must(c.admin.List(ctx, &secrets, client.HasLabels{"of"}))
	c.must(c.admin.List(ctx, &records))
	children, recorded := map[string][]corev1.Secret{}, map[string]string{}
	lives := map[string]bool{}
	for _, p := range parents.Items {
		lives[p.Name] = true
	}
	for _, s := range secrets.Items {
		if metav1.GetControllerOf(&s) != nil && !lives[s.Labels["of"]] {
			// A new leader made it before its cache had the deletion of the owner. The garbage collector deletes it.
			continue
		}
		children[s.Labels["of"]] = append(children[s.Labels["of"]], s)
	}
	for _, r := range records.Items {
		if of, is := strings.CutPrefix(r.Name, "of-"); is {
			recorded[of] = r.Data["children"]
		}
	}
	for _, p := range parents.Items {
		got, want := children[p.Name], *p.Spec.Replicas
		if p.DeletionTimestamp != nil || len(got) != int(want) || p.Status.Replicas != want {
			c.t.Errorf("parent %s, deleted %v, wants %d children, says it has %d, and has %s",
				p.Name, p.DeletionTimestamp, want, p.Status.Replicas, chaosNames(got))
		}
		for i := range want {
			named := func(s corev1.Secret) bool { return s.Name == chaosChild(p.Name, i) }
			if !strings.HasPrefix(p.Name, chaosGenerates) && !slices.ContainsFunc(got, named) {
				c.t.Errorf("parent %s lacks child %d", p.Name, i)
			}
		}
		if recorded[p.Name] != chaosNames(got) {
			c.t.Errorf("parent %s: written down are %q, there are %q", p.Name, recorded[p.Name], chaosNames(got))
		}
		delete(children, p.Name)
		delete(recorded, p.Name)
	}
	if len(children) > 0 || len(recorded) > 0 {
		c.t.Errorf("of parents that are gone there are children %v and records %v", children, recorded)
	}
	for _, p := range c.processes {
		c.judgeProcess(p)
	}
}

// judgeProcess checks that a process is ready, and that it keeps no records of writes for longer than it needs them.
func (c *chaos) judgeProcess(p *chaosProcess) {
	if code, body := get(p.life.Manager, "/readyz"); code != http.StatusOK {
		c.t.Errorf("process %s: %d %s", p.name, code, body)
	}
	cached := p.life.GetClient()
	for _, list := range []client.ObjectList{&appsv1.ReplicaSetList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}} {
		ctx := client.WithOwner(c.t.Context(), c) // This read settles the writes whose responses were lost.
		err := cached.List(ctx, list)
		if errors.Is(err, client.ErrStale) {
			time.Sleep(2 * time.Minute) // Until the next bookmark.
			err = cached.List(ctx, list)
		}
		if err != nil {
			c.t.Errorf("process %s: %v", p.name, err)
		}
	}
	if s := cached.Stats(); s.Unseen+s.Unknown+s.Expected > 0 {
		c.t.Errorf("process %s keeps records of writes: %+v", p.name, s)
	}
}
