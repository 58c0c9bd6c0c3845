package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/internal/groupclient"
)

// Lock holds the record that all candidates share, in the form that it has in a Lease. [NewLeaseLock] returns one.
//
// Concurrency: an [Elector] calls the methods one at a time, except Identity and Describe, which may be called at any
// time.
type Lock interface {
	// Get reads the record.
	//
	// Errors: the API's NotFound if there is no record yet.
	Get(ctx context.Context) (coordinationv1.LeaseSpec, error)
	// Create writes the first record.
	//
	// Errors: AlreadyExists.
	Create(ctx context.Context, record coordinationv1.LeaseSpec) error
	// Update replaces the record that the last successful call read or wrote.
	//
	// Errors: Conflict if the record was written since; NotFound.
	Update(ctx context.Context, record coordinationv1.LeaseSpec) error
	// RecordEvent records an event about the lock. Its message is the identity and what happened.
	RecordEvent(happened string)
	// Identity names this candidate.
	Identity() string
	// Describe names the lock, for logs and errors.
	Describe() string
}

// NewLeaseLock returns a lock on the Lease object with the namespace and name of lease. It sets the labels of lease
// with every write, and leaves other labels. identity names this candidate, and must be unique among the candidates;
// see [Identity]. recorder records events about the Lease; nil records none. The lock has its own client without a rate
// limit, so that a renewal never waits behind the requests of the controllers.
//
// Source: client-go v0.37.2 tools/leaderelection/resourcelock/leaselock.go, for the form of the Lease.
func NewLeaseLock(config *rest.Config, lease metav1.ObjectMeta, identity string, recorder events.Recorder,
) (Lock, error) {
	own := rest.CopyConfig(config)
	own.UserAgent = cmp.Or(own.UserAgent, rest.DefaultKubernetesUserAgent()) + "/leader-election"
	own.QPS, own.RateLimiter = -1, nil
	server, err := groupclient.New(own, coordinationv1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("client for leader election: %w", err)
	}
	return &leaseLock{
		meta: lease, identity: identity, recorder: recorder,
		client: groupclient.Resource[*coordinationv1.Lease](server, "leases", lease.Namespace),
	}, nil
}

// leaseLock is a lock on a Lease object.
type leaseLock struct {
	meta     metav1.ObjectMeta // namespace, name and labels
	identity string
	recorder events.Recorder
	client   *gentype.Client[*coordinationv1.Lease]
	// lease is the Lease as last read or written; nil before that.
	lease *coordinationv1.Lease
}

// Get implements [Lock].
func (l *leaseLock) Get(ctx context.Context) (coordinationv1.LeaseSpec, error) {
	lease, err := l.client.Get(ctx, l.meta.Name, metav1.GetOptions{})
	if err != nil {
		return coordinationv1.LeaseSpec{}, err
	}
	l.lease = lease
	return lease.Spec, nil
}

// Create implements [Lock].
func (l *leaseLock) Create(ctx context.Context, record coordinationv1.LeaseSpec) error {
	lease, err := l.client.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.meta.Namespace, Name: l.meta.Name, Labels: l.meta.Labels},
		Spec:       record,
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	l.lease = lease
	return nil
}

// Update implements [Lock].
func (l *leaseLock) Update(ctx context.Context, record coordinationv1.LeaseSpec) error {
	if l.lease == nil {
		return errors.New("update before the lease was read or created")
	}
	next := l.lease.DeepCopy()
	next.Spec = record
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	maps.Copy(next.Labels, l.meta.Labels)
	lease, err := l.client.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	l.lease = lease
	return nil
}

// RecordEvent implements [Lock].
func (l *leaseLock) RecordEvent(happened string) {
	if l.recorder == nil || l.lease == nil {
		return
	}
	about := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: l.lease.ObjectMeta,
	}
	l.recorder.Eventf(about, corev1.EventTypeNormal, "LeaderElection", "%s %s", l.identity, happened)
}

// Identity implements [Lock].
func (l *leaseLock) Identity() string { return l.identity }

// Describe implements [Lock].
func (l *leaseLock) Describe() string { return l.meta.Namespace + "/" + l.meta.Name }

// leaseRecord is what a lock holds.
type leaseRecord struct {
	// HolderIdentity is empty if the lock is free.
	HolderIdentity       string
	LeaseDurationSeconds int
	AcquireTime          metav1.Time
	RenewTime            metav1.Time
	// LeaderTransitions counts the changes of the holder.
	LeaderTransitions int
	// Strategy and PreferredHolder belong to coordinated leader election. The elector leaves them as they are.
	Strategy        coordinationv1.CoordinatedLeaseStrategy
	PreferredHolder string
}

func recordOf(s coordinationv1.LeaseSpec) leaseRecord {
	return leaseRecord{
		HolderIdentity:       ptr.Deref(s.HolderIdentity, ""),
		LeaseDurationSeconds: int(ptr.Deref(s.LeaseDurationSeconds, 0)),
		AcquireTime:          metav1.Time{Time: ptr.Deref(s.AcquireTime, metav1.MicroTime{}).Time},
		RenewTime:            metav1.Time{Time: ptr.Deref(s.RenewTime, metav1.MicroTime{}).Time},
		LeaderTransitions:    int(ptr.Deref(s.LeaseTransitions, 0)),
		Strategy:             ptr.Deref(s.Strategy, ""),
		PreferredHolder:      ptr.Deref(s.PreferredHolder, ""),
	}
}

// specOf returns the form that a record has in a Lease.
func specOf(r leaseRecord) coordinationv1.LeaseSpec {
	s := coordinationv1.LeaseSpec{
		HolderIdentity:       &r.HolderIdentity,
		LeaseDurationSeconds: ptr.To(int32(r.LeaseDurationSeconds)),
		AcquireTime:          &metav1.MicroTime{Time: r.AcquireTime.Time},
		RenewTime:            &metav1.MicroTime{Time: r.RenewTime.Time},
		LeaseTransitions:     ptr.To(int32(r.LeaderTransitions)),
	}
	if r.PreferredHolder != "" {
		s.PreferredHolder = &r.PreferredHolder
	}
	if r.Strategy != "" {
		s.Strategy = &r.Strategy
	}
	return s
}

// observation is a state of the lock and the time at which it was first seen, on the monotonic clock.
type observation struct {
	record leaseRecord
	at     time.Time // zero if never seen
}

// expiry returns the time from which no process leads by this lease, if it stays unchanged. The duration in the lease
// counts only if it is longer than the agreed one and the lease names a holder, because a person may have shortened it
// without the holder's knowledge.
func (o observation) expiry(agreed time.Duration) time.Time {
	switch {
	case o.at.IsZero():
		return time.Time{}
	case o.record.HolderIdentity == "":
		return o.at.Add(agreed)
	}
	return o.at.Add(max(agreed, time.Duration(o.record.LeaseDurationSeconds)*time.Second))
}

// releasedSeconds is the duration in a lease that its holder released.
//
// Source: client-go v0.37.2 tools/leaderelection, tryRelease.
const releasedSeconds = 1

// released returns the record with which a holder releases the lease.
func released(record leaseRecord) leaseRecord {
	now := metav1.Now()
	record.HolderIdentity, record.LeaseDurationSeconds = "", releasedSeconds
	record.RenewTime, record.AcquireTime = now, now
	return record
}

// isReleased reports whether the holder itself released the lease. A person who removes the holder's name would not set
// the duration to releasedSeconds.
func isReleased(record leaseRecord) bool {
	return record.HolderIdentity == "" && record.LeaseDurationSeconds == releasedSeconds
}

// sameTime compares times with the precision of the lease: in microseconds, without the monotonic clock.
func sameTime(a, b time.Time) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

func sameRecord(a, b leaseRecord) bool {
	return a.HolderIdentity == b.HolderIdentity && a.LeaderTransitions == b.LeaderTransitions &&
		a.LeaseDurationSeconds == b.LeaseDurationSeconds &&
		sameTime(a.RenewTime.Time, b.RenewTime.Time) && sameTime(a.AcquireTime.Time, b.AcquireTime.Time)
}

// Identity returns a unique name for this candidate: the host name and a random suffix, for example "node-7_1b4e…".
//
// Source: kube-controller-manager v1.37.2 cmd/kube-controller-manager/app.
func Identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("leader election identity: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}
