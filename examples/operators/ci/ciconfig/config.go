package ciconfig

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
)

// Config is the configuration of one branch of one repository, as much of it as the operators use.
type Config struct {
	Metadata Metadata `json:"metadata"`
	// Images are those that are built.
	Images    []Image    `json:"images,omitempty"`
	Promotion *Promotion `json:"promotion,omitempty"`
	// BaseImages, BuildRoot and TagSpecification are what builds and tests begin with.
	BaseImages       map[string]TagReference `json:"base_images,omitempty"`
	BuildRoot        *BuildRoot              `json:"build_root,omitempty"`
	TagSpecification *StreamReference        `json:"tag_specification,omitempty"`
}

// Metadata says whose configuration it is. Variant tells several of one branch apart.
type Metadata struct {
	Org     string `json:"org"`
	Repo    string `json:"repo"`
	Branch  string `json:"branch"`
	Variant string `json:"variant,omitempty"`
}

// String is "org/repo@branch".
func (m Metadata) String() string {
	text := m.Org + "/" + m.Repo + "@" + m.Branch
	if m.Variant != "" {
		text += "__" + m.Variant
	}
	return text
}

// Image is an image that is built; To is its name.
type Image struct {
	To string `json:"to"`
}

// Promotion says where images go when a change was merged.
type Promotion struct {
	To []Target `json:"to"`
}

// Target is an image stream that images are promoted to, one tag for each.
type Target struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Disabled  bool   `json:"disabled,omitempty"`
	// ExcludedImages are not promoted; "*" excludes all that are built.
	ExcludedImages []string `json:"excluded_images,omitempty"`
	// AdditionalImages are promoted besides: the tag, and the image that it gets.
	AdditionalImages map[string]string `json:"additional_images,omitempty"`
}

// TagReference names a tag.
type TagReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Tag       string `json:"tag"`
}

// StreamReference names a stream, all of whose tags are meant.
type StreamReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// BuildRoot is the image that sources are built in.
type BuildRoot struct {
	ImageStreamTag *TagReference `json:"image_stream_tag,omitempty"`
}

func (c *Config) validate() error {
	if m := c.Metadata; m.Org == "" || m.Repo == "" || m.Branch == "" {
		return fmt.Errorf("metadata of %s: org, repo and branch are required", m)
	}
	return nil
}

// Promoted are the tags that the configuration promotes to.
//
// Source: AllPromotionImageStreamTags in pkg/promotion of openshift/ci-tools.
func (c *Config) Promoted() []imagestreamtag.Ref {
	return c.promoted(func(t Target) bool { return !t.Disabled })
}

// promoted are the tags of those targets, each once, in order.
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

// inputs are the index keys of what builds and tests begin with.
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

// Postsubmit is a job that runs when something was merged.
type Postsubmit struct {
	Name string `json:"name"`
	// Branches and SkipBranches are regular expressions. None is every branch, and none skipped.
	Branches     []string          `json:"branches,omitempty"`
	SkipBranches []string          `json:"skip_branches,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Cluster      string            `json:"cluster,omitempty"`
}

// ShouldRun says whether the job is for that branch.
//
// Source: Brancher.ShouldRun of kubernetes-sigs/prow.
func (p *Postsubmit) ShouldRun(branch string) bool {
	matches := func(expression string) bool {
		matched, err := regexp.MatchString(expression, branch)
		return err == nil && matched // validate has tried it
	}
	if slices.ContainsFunc(p.SkipBranches, matches) {
		return false
	}
	return len(p.Branches) == 0 || slices.ContainsFunc(p.Branches, matches)
}

// jobFile is a file of jobs: by "org/repo".
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
