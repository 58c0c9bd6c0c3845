// Package sample is a configuration for every flag that requires one. It describes an organization with two
// repositories, and has an object to begin with.
package sample

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed config jobs refs.yaml profiles.yaml
var files embed.FS

// Write writes the configuration into dir.
func Write(dir string) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch path := filepath.Join(dir, name); {
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(path, 0o700)
		default:
			text, err := files.ReadFile(name)
			if err != nil {
				return err
			}
			return os.WriteFile(path, text, 0o600)
		}
	})
}

// Args returns the flags that name the configuration in dir.
func Args(dir string) []string {
	return []string{
		"--ci-operator-config-path=" + filepath.Join(dir, "config"), "--job-config-path=" + filepath.Join(dir, "jobs"),
		"--github-refs-file=" + filepath.Join(dir, "refs.yaml"), "--cluster-profiles-path=" +
			filepath.Join(dir, "profiles.yaml"),
		"--serviceAccountRefresherOptions.enabled-namespace=team",
	}
}
