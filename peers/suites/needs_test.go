package suites

// What the suites import and this package does not: go.mod has to require it, for they are compiled with this
// module's versions.
import (
	_ "github.com/go-logr/zapr"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/google/gofuzz"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "go.uber.org/goleak"
	_ "go.uber.org/zap"
	_ "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	_ "k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	_ "k8s.io/apiserver/pkg/authorization/authorizerfactory"
)
