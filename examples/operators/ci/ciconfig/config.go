package ciconfig

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
)

// Config is the configuration of one branch of one repository, reduced to what the operators use.
type Config struct {
	Metadata Metadata `json:"metadata"`
	// Images are the images to build.
	Images    []Image    `json:"images,omitempty"`
	Promotion *Promotion `json:"promotion,omitempty"`
	// BaseImages, BuildRoot and TagSpecification are what builds and tests begin with.
	BaseImages       map[string]TagReference `json:"base_images,omitempty"`
	BuildRoot        *BuildRoot              `json:"build_root,omitempty"`
	TagSpecification *StreamReference        `json:"tag_specification,omitempty"`
}

// Metadata names the branch. Variant distinguishes several configurations of one branch.
type Metadata struct {
	Org     string `json:"org"`
	Repo    string `json:"repo"`
	Branch  string `json:"branch"`
	Variant string `json:"variant,omitempty"`
}

// String returns "org/repo@branch".
func (m Metadata) String() string {
	text := m.Org + "/" + m.Repo + "@" + m.Branch
	if m.Variant != "" {
		text += "__" + m.Variant
	}
	return text
}

// Image is an image to build, under the name To.
type Image struct {
	To string `json:"to"`
}

// Promotion names the targets of images when a change has been merged.
type Promotion struct {
	To []Target `json:"to"`
}

// Target is an image stream that images are promoted to, one tag for each image.
type Target struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Disabled  bool   `json:"disabled,omitempty"`
	// ExcludedImages are not promoted; "*" excludes all that are built.
	ExcludedImages []string `json:"excluded_images,omitempty"`
	// AdditionalImages are promoted as well. The map goes from the tag to the image that it gets.
	AdditionalImages map[string]string `json:"additional_images,omitempty"`
}

// TagReference names a tag.
type TagReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Tag       string `json:"tag"`
}

// StreamReference names a stream, and means all of its tags.
type StreamReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// BuildRoot is the image in which sources are built.
type BuildRoot struct {
	ImageStreamTag *TagReference `json:"image_stream_tag,omitempty"`
}

func (c *Config) validate() error {
	if m := c.Metadata; m.Org == "" || m.Repo == "" || m.Branch == "" {
		return fmt.Errorf("metadata of %s: org, repo and branch are required", m)
	}
	return nil
}

// Promoted returns the tags that the configuration promotes to.
//
// Source: AllPromotionImageStreamTags in pkg/promotion of openshift/ci-tools.
func (c *Config) Promoted() []imagestreamtag.Ref {
	return c.promoted(func(t Target) bool { return !t.Disabled })
}

// promoted returns the tags of the targets for which which returns true, in order and without duplicates.
func (c *Config) promoted(which func(Target) bool) []imagestreamtag.Ref {
	if c.Promotion == nil {
		return nil
	}
	tags := map[imagestreamtag.Ref]bool{}
	for _, target := range c.Promotion.To {
		if !which(target) || target.Namespace == "" || target.Name == "" {
			continue
		}
		for _, image := range c.Images {
			if !slices.Contains(target.ExcludedImages, "*") && !slices.Contains(target.ExcludedImages, image.To) {
				tags[imagestreamtag.Ref{Namespace: target.Namespace, Stream: target.Name, Tag: image.To}] = true
			}
		}
		for tag := range target.AdditionalImages {
			tags[imagestreamtag.Ref{Namespace: target.Namespace, Stream: target.Name, Tag: tag}] = true
		}
	}
	return sortedRefs(tags)
}

// inputs returns the index keys of the tags that builds and tests begin with.
func (c *Config) inputs() []string {
	keys := map[string]bool{}
	add := func(t TagReference) {
		keys[imagestreamtag.Ref{Namespace: t.Namespace, Stream: t.Name, Tag: t.Tag}.String()] = true
	}
	for _, image := range c.BaseImages {
		add(image)
	}
	if c.BuildRoot != nil && c.BuildRoot.ImageStreamTag != nil {
		add(*c.BuildRoot.ImageStreamTag)
	}
	if s := c.TagSpecification; s != nil {
		keys[StreamKey(s.Namespace, s.Name)] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

func sortedRefs(set map[imagestreamtag.Ref]bool) []imagestreamtag.Ref {
	return slices.SortedFunc(maps.Keys(set), func(a, b imagestreamtag.Ref) int {
		switch {
		case a.String() < b.String():
			return -1
		case a == b:
			return 0
		}
		return 1
	})
}

// Postsubmit is a job that runs after a merge.
type Postsubmit struct {
	Name string `json:"name"`
	// Branches and SkipBranches are regular expressions. Empty Branches match every branch; empty SkipBranches skip
	// none.
	Branches     []string          `json:"branches,omitempty"`
	SkipBranches []string          `json:"skip_branches,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Cluster      string            `json:"cluster,omitempty"`
}

// ShouldRun reports whether the job is for that branch.
//
// Source: Brancher.ShouldRun of kubernetes-sigs/prow.
func (p *Postsubmit) ShouldRun(branch string) bool {
	matches := func(expression string) bool {
		matched, err := regexp.MatchString(expression, branch)
		return err == nil && matched // validate has compiled it
	}
	if slices.ContainsFunc(p.SkipBranches, matches) {
		return false
	}
	return len(p.Branches) == 0 || slices.ContainsFunc(p.Branches, matches)
}

// jobFile is a file of jobs, by "org/repo".
type jobFile struct {
	Postsubmits map[string][]Postsubmit `json:"postsubmits"`
}

func (f *jobFile) validate() error {
	for repo, jobs := range f.Postsubmits {
		for _, job := range jobs {
			if job.Name == "" {
				return fmt.Errorf("a postsubmit of %s has no name", repo)
			}
			for _, expression := range append(slices.Clone(job.Branches), job.SkipBranches...) {
				if _, err := regexp.Compile(expression); err != nil {
					return fmt.Errorf("postsubmit %s of %s: %w", job.Name, repo, err)
				}
			}
		}
	}
	return nil
}

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
