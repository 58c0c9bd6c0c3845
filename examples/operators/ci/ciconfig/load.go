package ciconfig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// state is what the folders say at one time.
type state struct {
	// text is every file's content by path, to see whether anything changed.
	text    map[string]string
	configs []*Config // in order of paths
	jobs    map[string][]Postsubmit
}

// load reads both folders. Either may be empty: then there is nothing in it.
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

// walk hands every YAML file below dir to read, in order. Links are followed, as a ConfigMap's volume needs, but not into the
// folders "..name" that it keeps the files' versions in.
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
