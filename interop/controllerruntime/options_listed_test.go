package controllerruntime_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// TestOptionsOfTheManagerAreListed: the page for users of controller-runtime says of every field of its manager's
// options what takes its place, and of none that does not exist.
func TestOptionsOfTheManagerAreListed(t *testing.T) {
	page, err := os.ReadFile("../../docs/coming-from-controller-runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Options of the manager\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]bool{}
	for line := range strings.Lines(section) {
		first, found := strings.CutPrefix(line, "| `")
		if !found {
			continue
		}
		first, _, _ = strings.Cut(first, " |")
		first, _, _ = strings.Cut(first, " with ")
		for name := range strings.SplitSeq(first, ", ") {
			listed[strings.Trim(name, "`")] = true
		}
	}
	delete(listed, "ctrl.Options")                                  // The heading.
	structs := []string{"Cache", "Client", "Metrics", "Controller"} // Their fields are listed.
	exist := map[string]bool{}
	for prefix, of := range map[string]reflect.Type{
		"":            reflect.TypeFor[manager.Options](),
		"Cache.":      reflect.TypeFor[cache.Options](),
		"Client.":     reflect.TypeFor[client.Options](),
		"Metrics.":    reflect.TypeFor[server.Options](),
		"Controller.": reflect.TypeFor[config.Controller](),
	} {
		for i := range of.NumField() {
			field := of.Field(i)
			if !field.IsExported() || prefix == "" && slices.Contains(structs, field.Name) {
				continue
			}
			exist[prefix+field.Name] = true
			if !listed[prefix+field.Name] {
				t.Errorf("%s%s of %s is not listed", prefix, field.Name, of)
			}
		}
	}
	for name := range listed {
		if !exist[name] {
			t.Errorf("%s is listed, and does not exist", name)
		}
	}
}
