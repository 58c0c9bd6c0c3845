package multicluster

// What multicluster-runtime's own tests import and this package does not: go.mod has to require it, for they are
// compiled with this module's versions.
import (
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "go.uber.org/zap"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
	_ "sigs.k8s.io/controller-runtime/pkg/log/zap"

	_ "github.com/flyball-dev/flyball/interop/multiclusterruntime"
)
