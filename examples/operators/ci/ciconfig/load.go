package ciconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// state is the content of the folders at one time.
type state struct {
	// text is the content of every file by path. It is compared to find out whether anything changed.
	text    map[string]string
	configs []*Config // in order of paths
	jobs    map[string][]Postsubmit
}

// load reads both folders. The name of a folder may be empty, which means an empty folder.
func load(configDir, jobsDir string) (*state, error) {
	s := &state{text: map[string]string{}, jobs: map[string][]Postsubmit{}}
	var wrong []error
	err := s.walk(configDir, func(path string, text []byte) error {
		c := &Config{}
		if err := yaml.UnmarshalStrict(text, c); err != nil {
			return err
		}
		s.configs = append(s.configs, c)
		return c.validate()
	})
	wrong = append(wrong, err)
	err = s.walk(jobsDir, func(path string, text []byte) error {
		var f jobFile
		if err := yaml.Unmarshal(text, &f); err != nil {
			return err
		}
		for repo, jobs := range f.Postsubmits {
			s.jobs[repo] = append(s.jobs[repo], jobs...)
		}
		return f.validate()
	})
	return s, errors.Join(append(wrong, err)...)
}

// walk calls read for every YAML file below dir, in order. It follows links, as the volume of a ConfigMap needs, but
// skips the folders "..name" in which such a volume stores the versions of its files.
func (s *state) walk(dir string, read func(path string, text []byte) error) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	var wrong []error
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if strings.HasPrefix(entry.Name(), "..") {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case info.IsDir():
			wrong = append(wrong, s.walk(path, read))
		case strings.HasSuffix(path, ".yaml"):
			text, err := os.ReadFile(path)
			if err == nil {
				s.text[path] = string(text)
				err = read(path, text)
			}
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
			}
		}
	}
	return errors.Join(wrong...)
}
