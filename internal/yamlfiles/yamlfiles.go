// Package yamlfiles finds files of YAML and JSON.
package yamlfiles

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// In returns path itself if it is a file. If it is a directory, In returns the files in it, but not below it, whose
// names end in .yaml, .yml or .json. A kustomization.yaml is left out: it has no object of a cluster.
func In(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		kustomization := strings.HasPrefix(e.Name(), "kustomization.")
		if !e.IsDir() && !kustomization && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, err
}
