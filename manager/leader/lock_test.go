package leader_test

import (
	"context"
	"maps"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/manager/leader"
)

// A lock keeps its record in a Lease and sets its labels, but leaves other labels alone. It does not overwrite a change
// that it has not read.
//
// Source: client-go v0.37.2 tools/leaderelection/resourcelock/leaselock.go.
func TestLeaseLock(t *testing.T) {
	api, ctx := localapi.NewTest(t), context.Background()
	c, err := client.New(api.RESTConfig(), client.Options{})
	must(t, err)
	config := api.RESTConfig()
	config.UserAgent = "op/v1"
	lock, err := leader.NewLeaseLock(config, metav1.ObjectMeta{
		Namespace: "default", Name: "op", Labels: map[string]string{"color": "blue"},
	}, "a", nil)
	must(t, err)
	if _, err := lock.Get(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("get before the creation: %v", err)
	}
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	record := coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("a"), LeaseDurationSeconds: ptr.To(int32(15)), AcquireTime: &now, RenewTime: &now,
		LeaseTransitions: ptr.To(int32(3)),
	}
	must(t, lock.Create(ctx, record))
	if err := lock.Create(ctx, record); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create again: %v", err)
	}
	record.LeaseTransitions = ptr.To(int32(4))
	must(t, lock.Update(ctx, record)) // without a Get

	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "op"}}
	must(t, c.Get(ctx, client.ObjectKeyFromObject(lease), lease))
	if s := lease.Spec; *s.HolderIdentity != "a" || *s.LeaseDurationSeconds != 15 || *s.LeaseTransitions != 4 ||
		!s.RenewTime.Time.Equal(now.Time) || !s.AcquireTime.Time.Equal(now.Time) {
		t.Errorf("the lease holds %v", s)
	}
	lease.Labels = map[string]string{"by": "others"}
	must(t, c.Update(ctx, lease))
	if err := lock.Update(ctx, record); !apierrors.IsConflict(err) {
		t.Errorf("update over a change: %v", err)
	}
	record, err = lock.Get(ctx)
	must(t, err)
	must(t, lock.Update(ctx, record))
	must(t, c.Get(ctx, client.ObjectKeyFromObject(lease), lease))
	if !maps.Equal(lease.Labels, map[string]string{"by": "others", "color": "blue"}) {
		t.Errorf("labels %v", lease.Labels)
	}
	for _, e := range api.Audit().Entries(func(e audit.Entry) bool { return e.UserAgent == "op/v1/leader-election" }) {
		if e.Verb != "get" && e.ContentType != "application/vnd.kubernetes.protobuf" {
			t.Errorf("sent as %s: %v", e.ContentType, e)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
