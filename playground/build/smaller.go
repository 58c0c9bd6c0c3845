package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
)

// leftOut is the code of other modules that the program is built without, by module: files whose path in the module
// matches a pattern of [path.Match], or only what an expression matches in each. See
// docs/decisions/0027-what-the-playground-leaves-out.md.
var leftOut = map[string][]struct {
	files string
	text  *regexp.Regexp
}{
	"k8s.io/api": {
		{files: "*/*/generated.pb.go"}, // Protobuf. Client and server are one program, and speak JSON.
		{"*/*/types_swagger_doc_generated.go", regexp.MustCompile(`(?s)= |\{\n\t".*?\n\}`)}, // the values of variables
	},
	"k8s.io/apiextensions-apiserver": {{files: "pkg/apis/apiextensions/*/generated.pb.go"}},
	// OpenAPI in protobuf, and what converts it.
	"github.com/google/gnostic-models": {{files: "openapiv[23]/*.go"}},
	"k8s.io/kube-openapi": {
		{files: "pkg/util/proto/document*.go"}, {files: "pkg/validation/spec/gnostic.go"},
	},
	// Lines about versions that localapi does not serve.
	"k8s.io/client-go": {{"kubernetes/scheme/register.go", regexp.MustCompile(`(?m)^.*v\d(alpha|beta)\d.*\n`)}},
}

// stubs are files with the declarations of left out code that other packages need in order to be compiled.
var stubs = map[string]string{
	without + "github.com/google/gnostic-models/openapiv2/stub.go": "package openapi_v2\n" + document,
	without + "github.com/google/gnostic-models/openapiv3/stub.go": "package openapi_v3\n" + document,
	without + "k8s.io/kube-openapi/pkg/util/proto/stub.go": `package proto

type Ref struct{ Schema }

func (*Ref) Reference() string { return "" }
`,
}

const document = `
import (
	"errors"

	"google.golang.org/protobuf/proto"
)

type Document struct{ proto.Message }

func ParseDocument([]byte) (*Document, error) { return nil, errors.ErrUnsupported }
`

// errUpgraded is the error of a module that is not as leftOut expects.
var errUpgraded = errors.New("if a module was upgraded, adapt leftOut and stubs in playground/build/smaller.go")

// without is a folder for the modules in leftOut, without that code. It exists in an overlay only. Its name is in the
// program, so that of a temporary folder would make another program every time.
const without = "build/without/"

// smaller writes into dir what has the go command leave out that code, and returns the flags of go build for it. An
// overlay cannot replace files in the cache of modules. So another go.mod replaces the modules.
func smaller(dir string) (flags []string, err error) {
	overlay, files := map[string]string{}, maps.Clone(stubs)
	mod, err := os.ReadFile("go.mod")
	sum, sumErr := os.ReadFile("go.sum")
	c := exec.Command("go", slices.Concat([]string{"mod", "download", "-json"}, slices.Sorted(maps.Keys(leftOut)))...)
	c.Stderr = os.Stderr
	list, listErr := c.Output()
	if err := errors.Join(err, sumErr, listErr); err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(list)); d.More(); {
		var m struct{ Path, Version, Dir string }
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		mod = fmt.Appendf(mod, "replace %s => ./%s\n", m.Path, without+m.Path)
		module := os.DirFS(m.Dir)
		if err := fs.WalkDir(module, ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				overlay[path.Join(without, m.Path, name)] = filepath.Join(m.Dir, name)
			}
			return err
		}); err != nil {
			return nil, err
		}
		for _, l := range leftOut[m.Path] {
			found, err := fs.Glob(module, l.files)
			for _, name := range found {
				at := path.Join(without, m.Path, name)
				delete(overlay, at)
				if l.text == nil {
					continue
				}
				text, readErr := fs.ReadFile(module, name)
				if err = errors.Join(err, readErr); !l.text.Match(text) {
					found = nil
				}
				files[at] = l.text.ReplaceAllString(string(text), "")
			}
			if err == nil && found == nil {
				err = fmt.Errorf("%s %s has nothing to leave out in %s: %w", m.Path, m.Version, l.files, errUpgraded)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	write := func(name, text string) (file string) {
		file = filepath.Join(dir, name)
		err = errors.Join(err, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	for at, text := range files {
		overlay[at] = write(fmt.Sprint(len(overlay), ".go"), text)
	}
	replace, jsonErr := json.Marshal(map[string]any{"Replace": overlay})
	flags = []string{
		"-trimpath", "-modfile", write("go.mod", string(mod)), "-overlay", write("overlay.json", string(replace)),
	}
	write("go.sum", string(sum))
	return flags, errors.Join(err, jsonErr)
}
