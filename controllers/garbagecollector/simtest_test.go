package garbagecollector_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

// simulatedMap returns default/name.
func simulatedMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// owns creates an object, or changes an existing one, so that it names these ConfigMaps as its owners.
func owns(u *simtest.User, dependent client.Object, owners ...string) {
	u.Do("owners of "+dependent.GetName(), func(ctx context.Context, c client.Client) error {
		obj := dependent.DeepCopyObject().(client.Object)
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		var refs []metav1.OwnerReference
		for _, name := range owners {
			owner := simulatedMap(name)
			if err := c.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
				return err
			}
			refs = append(refs, ownerRef(owner, true))
		}
		obj.SetOwnerReferences(refs)
		if err != nil {
			return c.Create(ctx, obj)
		}
		return c.Update(ctx, obj)
	})
}

// deletes deletes default/name with a policy.
func deletes(u *simtest.User, name string, policy metav1.DeletionPropagation) {
	u.Do("delete "+name+" in the way "+string(policy), func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, simulatedMap(name), client.PropagationPolicy(policy))
	})
}

// Owners are deleted with each of the three policies. Among them are one whose dependent also has another owner, one
// whose name is used again at once, and two that own each other. One dependent is created after its owner is gone.
func TestSimulatedLife(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "secret"}}
	stranger := simulatedMap("stranger")
	stranger.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "11111111-2222-4333-8444-555555555555",
		BlockOwnerDeletion: ptr.To(true),
	}}
	simtest.Check(t, simtest.Scenario{
		Build:  simulated.GarbageCollector(corev1.Resource("configmaps"), corev1.Resource("secrets")),
		Budget: 2 * time.Second,
		Script: func(u *simtest.User) {
			for _, name := range []string{"a", "b", "c", "d"} {
				u.Create(simulatedMap(name))
			}
			owns(u, simulatedMap("of-a"), "a")
			owns(u, simulatedMap("of-ab"), "a", "b")
			owns(u, secret, "of-a")
			owns(u, simulatedMap("of-b"), "b")
			owns(u, simulatedMap("of-of-b"), "of-b")
			owns(u, simulatedMap("of-c"), "c")
			owns(u, simulatedMap("d"), "of-c")
			u.Settle()
			deletes(u, "a", metav1.DeletePropagationBackground)
			u.Create(simulatedMap("a"))
			u.Settle()
			u.Create(stranger)
			u.Settle()
			owns(u, secret, "a")
			deletes(u, "b", metav1.DeletePropagationForeground)
			u.Settle()
			owns(u, simulatedMap("c"), "d")
			u.Settle()
			deletes(u, "c", metav1.DeletePropagationForeground)
			u.Settle()
			owns(u, simulatedMap("of-a"), "a")
			u.Settle()
			deletes(u, "a", metav1.DeletePropagationOrphan)
			u.Settle()
			// As in kube-controller-manager, dependents that the collector has not seen when it orphans the others are
			// deleted later.
			u.Delete(simulatedMap("of-a"))
			u.Delete(secret)
			u.Settle()
		},
		Matches: func(s *simtest.State) error {
			if left := simtest.List[*corev1.ConfigMap](s, "default"); len(left) > 0 {
				return fmt.Errorf("%s is left", left[0].Name)
			}
			return nil
		},
	})
}
