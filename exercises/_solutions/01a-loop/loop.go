// Package loop is the solution of task 01a.
package loop

import (
	"errors"
	"fmt"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Reconcile creates and deletes Pods until a Set has those that it asks for.
func Reconcile(api API, set string) error {
	s, err := api.Get(set)
	if errors.Is(err, kube.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	pods, err := api.List(set)
	if err != nil {
		return err // An error does not mean that there are no Pods.
	}
	there := map[string]bool{}
	for _, p := range pods {
		there[p.Name] = true
	}
	wanted := map[string]bool{}
	for n := 1; n <= s.Want; n++ {
		name := fmt.Sprintf("%s-%d", set, n)
		wanted[name] = true
		if there[name] {
			continue
		}
		if err := api.Create(Pod{Name: name, Set: set}); err != nil && !errors.Is(err, kube.ErrExists) {
			return err
		}
	}
	for _, p := range pods {
		if wanted[p.Name] {
			continue
		}
		if err := api.Delete(p.Name); err != nil && !errors.Is(err, kube.ErrNotFound) {
			return err
		}
	}
	if s.Have == s.Want {
		return nil
	}
	s.Have = s.Want
	return api.UpdateStatus(s)
}
