package v1alpha1_test

import (
	"os"
	"testing"

	"github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/internal/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
