package github

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// File is a [Client] that reads a YAML file, again for every call:
//
//	org/repo:
//	  heads/main: 0a1b2c…
type File string

// GetRef implements [Client].
func (f File) GetRef(_ context.Context, org, repo, ref string) (string, error) {
	text, err := os.ReadFile(string(f))
	if err != nil {
		return "", fmt.Errorf("read references: %w", err)
	}
	var repos map[string]map[string]string
	if err := yaml.Unmarshal(text, &repos); err != nil {
		return "", fmt.Errorf("read references from %s: %w", string(f), err)
	}
	refs := repos[org+"/"+repo]
	if sha, found := refs[ref]; found {
		return sha, nil
	}
	similar := func(name string) bool { return strings.HasPrefix(name, ref) }
	if slices.ContainsFunc(slices.Collect(maps.Keys(refs)), similar) {
		return "", fmt.Errorf("%s of %s/%s: %w", ref, org, repo, ErrTooManyRefs)
	}
	return "", fmt.Errorf("%s of %s/%s: %w", ref, org, repo, ErrNotFound)
}
