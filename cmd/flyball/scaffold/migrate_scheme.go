package scaffold

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// schemeBuilder is the variable of a package of kinds, as kubebuilder writes it: its name, and that of the version.
var schemeBuilder = regexp.MustCompile(`\b(\w+)(\s*)=\s*&scheme\.Builder\{\s*GroupVersion:\s*(\w+),?\s*\}`)

// builderCall and registerCall make and use a scheme builder of apimachinery.
const (
	builderCall = "runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {\n" +
		"metav1.AddToGroupVersion(s, $3)\nreturn nil\n})"
	registerCall = ".Register(func(s *runtime.Scheme) error {\ns.AddKnownTypes($VERSION, $1)\nreturn nil\n})"
)

// schemeRewrites returns the rewrites that replace controller-runtime's scheme builder by that of apimachinery, in the
// files of a folder. All files of a package that register kinds need them, so the one with the variable is found first.
func schemeRewrites(dir string) rewrites {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), `"sigs.k8s.io/controller-runtime/pkg/scheme"`) {
			continue
		}
		found := schemeBuilder.FindStringSubmatch(string(text))
		if found == nil {
			continue
		}
		return rewrites{
			{schemeBuilder, "$1$2= " + builderCall},
			{
				regexp.MustCompile(`\b` + found[1] + `\.Register\(\s*((?:&\w+\{\}\s*,?\s*)+)\)`),
				found[1] + strings.ReplaceAll(registerCall, "$VERSION", found[3]),
			},
		}
	}
	return nil
}
