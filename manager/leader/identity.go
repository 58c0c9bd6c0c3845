package leader

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"
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
