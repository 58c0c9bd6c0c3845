package simtest

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// TestCache: caches that miss an object, or have an old, a changed or a dead one, are found.
func TestCache(t *testing.T) {
	for _, test := range []struct {
		name, want string
		spoil      func([]*corev1.ConfigMap) []*corev1.ConfigMap
	}{
		{"right", "", func(all []*corev1.ConfigMap) []*corev1.ConfigMap { return all }},
		{"missing", "is missing", func(all []*corev1.ConfigMap) []*corev1.ConfigMap { return all[1:] }},
		{"old", "has version", func(all []*corev1.ConfigMap) []*corev1.ConfigMap {
			all[0].ResourceVersion = "1"
			return all
		}},
		{"dead", "gone", func(all []*corev1.ConfigMap) []*corev1.ConfigMap {
			all[0].UID = "another"
			return all
		}},
		{"changed", "content", func(all []*corev1.ConfigMap) []*corev1.ConfigMap {
			all[0].Data["text"] = "changed"
			return all
		}},
		{"surplus", "not in the API server", func(all []*corev1.ConfigMap) []*corev1.ConfigMap {
			other := all[0].DeepCopy()
			other.Name = "other"
			return append(all, other)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, _ := Find(t, Scenario{
				Objects: []runtime.Object{sources()[1]},
				Build:   cachedCopier(test.spoil),
				Script:  func(u *User) { u.Create(sources()[0]) },
			}, Options{Runs: 40, Budget: time.Minute})
			switch {
			case test.want == "" && f != nil:
				t.Error(f)
			case test.want != "" && (f == nil || f.Rule != RuleCache || !strings.Contains(f.Text, test.want)):
				t.Errorf("%v, want %q", f, test.want)
			}
		})
	}
}

// cachedCopier is newCopier that tells of its cache of ConfigMaps.
func cachedCopier(spoil func([]*corev1.ConfigMap) []*corev1.ConfigMap) func(e *Env) (Program, error) {
	return func(e *Env) (Program, error) {
		p, err := newCopier(1)(e)
		if err != nil {
			return nil, err
		}
		c := p.(ctrl.Manager).GetClient()
		Cache(e, func(ctx context.Context) ([]*corev1.ConfigMap, error) {
			var list corev1.ConfigMapList
			if err := c.List(ctx, &list, client.InNamespace("default")); err != nil {
				return nil, err
			}
			return spoil(pointers(list.Items)), nil
		}, func(m *corev1.ConfigMap) bool { return m.Namespace == "default" })
		return p, nil
	}
}

func pointers[T any](items []T) []*T {
	var all []*T
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// TestCacheThatWaits: a list that asks the API server is a finding, and does not hang.
func TestCacheThatWaits(t *testing.T) {
	f, _ := Find(t, Scenario{
		Build: func(e *Env) (Program, error) {
			c, err := client.New(e.Config(), client.Options{})
			Cache(e, func(ctx context.Context) ([]*corev1.ConfigMap, error) {
				return nil, c.List(ctx, &corev1.ConfigMapList{})
			}, nil)
			p, failed := newCopier(1)(e)
			if err == nil {
				err = failed
			}
			return p, err
		},
		Script: func(u *User) { u.Create(sources()[0]) },
	}, Options{Runs: 1})
	if f == nil || f.Rule != RuleCache || !strings.Contains(f.Text, "memory") {
		t.Error(f)
	}
}

// TestStatistical: a program that does things at random is told of, and judged all the same.
func TestStatistical(t *testing.T) {
	c := newChecker(t, &Scenario{
		Build: func(e *Env) (Program, error) {
			c, err := client.New(e.Config(), client.Options{})
			return ProgramFunc(func(ctx context.Context) error {
				for name := range map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": true, "f": true} {
					m := sources()[0]
					m.Name = name
					if err := client.IgnoreAlreadyExists(c.Create(ctx, m)); err != nil {
						return err
					}
				}
				<-ctx.Done()
				return nil
			}), err
		},
		Script: func(u *User) { u.Settle() },
	}, Options{Runs: 20, Budget: time.Minute})
	// Two runs have the same order of six once in 720 times.
	for range 3 {
		if c.check(); c.tally.Differs != "" {
			break
		}
	}
	if !strings.Contains(c.tally.Differs, "operation ") || c.tally.Runs < 20 {
		t.Errorf("%q, %d runs", c.tally.Differs, c.tally.Runs)
	}
}

// TestPageEscapes: names of objects cannot bring markup into the page.
func TestPageEscapes(t *testing.T) {
	var b strings.Builder
	const evil = `<script>alert("x")</script>`
	err := pageTemplate.Execute(&b, page{
		Test: evil, Finding: evil, Actors: []string{evil},
		Rows: []pageRow{{At: evil, Column: 1, Kind: `"><script>`, Text: evil, Result: evil}, {Text: evil}},
	})
	if err != nil || strings.Contains(b.String(), "<script") || !strings.Contains(b.String(), "&lt;script&gt;") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
