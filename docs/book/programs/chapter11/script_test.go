// Package chapter11 has the programs of the chapter about Deployment and ReplicaSet: a rollout as a script, and the
// real controller in clusters whose Pods the tests play.
package chapter11

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
)

// A script replaces the Pods of one ReplicaSet by those of another, one by one.
type script struct {
	sets     appsv1client.ReplicaSetInterface
	old, new string
	count    int
	// wait returns when a ReplicaSet has that many Pods which are available.
	wait func(set string, available int)
}

// run is the whole rollout.
func (s script) run(ctx context.Context) error {
	for n := 1; n <= s.count; n++ {
		if err := s.resize(ctx, s.new, n); err != nil {
			return err
		}
		s.wait(s.new, n)
		if err := s.resize(ctx, s.old, s.count-n); err != nil {
			return err
		}
	}
	return nil
}

func (s script) resize(ctx context.Context, set string, size int) error {
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, size)
	_, err := s.sets.Patch(ctx, set, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
