package scaffold

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// flagRewrites are for the manifests: klog has one level where zap has several flags. A flag that is an element of a
// list goes with its line; one that is a value, as in a patch, becomes the level that klog has anyway.
var flagRewrites = newRewrites(
	`--zap-log-level=(\d+)\b`, `--v=$1`,
	`--zap-log-level=debug\b`, `--v=1`,
	`(?m)^[ \t]*- ["']?--zap-[\w-]+(?:=[^\s"']*)?["']?[ \t]*\n`, ``,
	`--zap-[\w-]+(?:=[^\s"']*)?`, `--v=0`,
)

// moveFlags rewrites the flags of zap in the manifests, if the program has these flags no longer. It lists the flags of
// the manager that the program does not have.
func moveFlags(c *change) error {
	program, err := c.programText()
	if err != nil {
		return err
	}
	return c.walk(func(path string) error {
		if ext := filepath.Ext(path); ext != ".yaml" && ext != ".yml" {
			return nil
		}
		old, _, err := c.read(path)
		if err != nil {
			return err
		}
		text, zap := old, strings.Contains(program, "zap.Options{")
		if !zap {
			text = []byte(flagRewrites.apply(string(old)))
		}
		c.write(path, old, text)
		for _, name := range managerFlags(text) {
			known := slices.Contains(klogFlags, name) || zap && strings.HasPrefix(name, "zap-")
			if !known && !strings.Contains(program, `"`+name+`"`) {
				note := fmt.Sprintf("%s: the program has no flag --%s, and would not start: remove it", path, name)
				if name == "kubeconfig" { // which controller-runtime defines in every program
					note += ", and set KUBECONFIG in the environment"
				}
				c.notes = append(c.notes, note)
			}
		}
		return nil
	})
}

// klogFlags are those that klog.InitFlags defines.
var klogFlags = []string{
	"add_dir_header", "alsologtostderr", "log_backtrace_at", "log_dir", "log_file", "log_file_max_size", "logtostderr",
	"one_output", "skip_headers", "skip_log_headers", "stderrthreshold", "v", "vmodule",
}

// programText returns the Go files of a project in one text, without tests, as this change has them so far.
func (c *change) programText() (string, error) {
	var all bytes.Buffer
	err := c.walk(func(path string) error {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, _, err := c.read(path)
		all.Write(text)
		return err
	})
	return all.String(), err
}

var argument = regexp.MustCompile(`^--?([\w-]+)`)

// managerFlags returns the names of the flags that a manifest gives to containers called manager, or adds by a patch.
func managerFlags(text []byte) (names []string) {
	eachNode(text, func(_, n *yaml.Node) {
		var args []*yaml.Node
		if list := child(n, "args"); scalar(n, "name") == "manager" && list != nil {
			args = list.Content
		} else if value := child(n, "value"); scalar(n, "op") == "add" && value != nil {
			args = []*yaml.Node{value}
		}
		for _, arg := range args {
			if m := argument.FindStringSubmatch(arg.Value); m != nil {
				names = append(names, m[1])
			}
		}
	})
	return names
}
