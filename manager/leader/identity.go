package leader

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Identity returns a unique name for this candidate: the host name and a random suffix, for example "node-7_1b4e…".
//
// Source: kube-controller-manager v1.37.1 cmd/kube-controller-manager/app.
func Identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("leader election identity: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// NewLeaseLock returns a lock on a Lease object. The lock has its own client without a rate limit, so that a renewal
// never waits behind the requests of the controllers.
func NewLeaseLock(config *rest.Config, namespace, name string,
	o resourcelock.ResourceLockConfig,
) (*resourcelock.LeaseLock, error) {
	own := rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	own.QPS, own.RateLimiter = -1, nil
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("client for leader election: %w", err)
	}
	lock := &resourcelock.LeaseLock{Client: client.CoordinationV1(), LockConfig: o}
	lock.LeaseMeta.Namespace, lock.LeaseMeta.Name = namespace, name
	return lock, nil
}
