package controllerruntime_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
)

// Without a config nobody knows which cluster is meant.
func TestMisuse(t *testing.T) {
	for name, do := range map[string]func() error{
		"NewManager":   func() error { _, err := controllerruntime.NewManager(nil, manager.Options{}); return err },
		"NewCache":     func() error { _, err := controllerruntime.NewCache(nil, cache.Options{}); return err },
		"NewLeanCache": func() error { _, err := controllerruntime.NewLeanCache(nil, cache.Options{}); return err },
		"NewClient":    func() error { _, err := controllerruntime.NewClient(nil, client.Options{}); return err },
	} {
		if err := do(); err == nil ||
			!strings.Contains(err.Error(), "must specify Config: it is nil; ctrl.GetConfig makes one") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
