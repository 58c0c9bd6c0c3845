package archtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReleasedNames: the changelog names each public name of the last release that is gone or has another signature
// now. docs/stability.md promises that.
func TestReleasedNames(t *testing.T) {
	missing, err := unannounced(root)
	if errors.Is(err, errNoRelease) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range missing {
		t.Errorf("%s: say in CHANGELOG.md, below Unreleased, what to write instead", text)
	}
}

var errNoRelease = errors.New("no release has been tagged, or the clone lacks its history")

// unannounced compares docs/api in a repository with docs/api at the last tag. It returns what is gone, and is not in
// the changelog's section Unreleased.
func unannounced(dir string) (missing []string, err error) {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	tag, err := git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
	if err != nil {
		return nil, errNoRelease
	}
	files, err := git("ls-tree", "--name-only", "--full-tree", tag, "docs/api/")
	if err != nil {
		return nil, err
	}
	changes, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	_, section, _ := strings.Cut(string(changes), "\n## Unreleased\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, file := range strings.Fields(files) {
		before, err := git("show", tag+":"+file)
		if err != nil {
			return nil, err
		}
		pkg := strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".txt"), ".", "/")
		now, err := os.ReadFile(filepath.Join(dir, file))
		if errors.Is(err, fs.ErrNotExist) && strings.Contains(section, "`"+pkg+"`") {
			continue // the package is gone, and the changelog says so
		}
		for _, line := range gone(before, string(now)) {
			if !named(section, line) {
				missing = append(missing, fmt.Sprintf("%s of %s: %s", pkg, tag, line))
			}
		}
	}
	return missing, nil
}

// gone returns the lines that are not there now. Those of the members of a type that is gone are left out.
func gone(before, now string) (lines []string) {
	kept := strings.Split(now, "\n")
	for line := range strings.SplitSeq(before, "\n") {
		typ, member := declares(line)
		ofGone := member != "" && !slices.ContainsFunc(kept, func(l string) bool {
			t, m := declares(l)
			return t == typ && m == ""
		})
		if !slices.Contains(kept, line) && !ofGone {
			lines = append(lines, line)
		}
	}
	return lines
}

var declaration = regexp.MustCompile(
	`^(?:(?:const|var|func|type) (\w+)(?:, (?:embedded [*\w.]*?)?(\w+))?|method \((?:\w+ )?\*?(\w+).*?\) (\w+))`)

// declares returns the name that a line of docs/api declares, and that of the member if it is one of a type.
func declares(line string) (name, member string) {
	m := declaration.FindStringSubmatch(line)
	if m == nil {
		return "", ""
	}
	return m[1] + m[3], m[2] + m[4]
}

// named reports whether a text has the name that a line declares: that of a member if it is one.
func named(text, line string) bool {
	name, member := declares(line)
	if member != "" {
		name = member
	}
	return regexp.MustCompile(`\b` + name + `\b`).MatchString(text)
}

// TestUnannouncedIsSeen releases a package in a scratch repository, and then changes it.
func TestUnannouncedIsSeen(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		full := filepath.Join(dir, file)
		err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{
			"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com",
			"-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false",
		}, args...)...)
		if text, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, text)
		}
	}
	git("init", "-q")
	const released = `const Kept
func Changed(a int) error
func Moved[T any](a T)
method (q *Queue[K]) Add(key K)
method (s Set) Len() int
type Queue struct
type Queue, Size int
type Set map[string]int
type Set, embedded sync.Mutex
`
	write("docs/api/a.b.txt", released)
	write("docs/api/c.txt", "func Last()\n")
	const heading, release = "# Changes\n\n## Unreleased\n", "\n## v0.1.0 (2026-01-01)\n\n- `Set` and `Size` are new.\n"
	write("CHANGELOG.md", heading+release)
	git("add", ".")
	git("commit", "-q", "-m", "all")
	if _, err := unannounced(dir); !errors.Is(err, errNoRelease) {
		t.Errorf("without a tag: %v", err)
	}
	git("tag", "-a", "-m", "x", "v0.1.0")
	git("tag", "-a", "-m", "x", "interop/x/v0.2.0") // of another module
	if missing, err := unannounced(dir); err != nil || len(missing) != 0 {
		t.Errorf("nothing has changed: %q, %v", missing, err)
	}
	write("docs/api/a.b.txt", "const Kept\nconst New\nfunc Changed(a, b int) error\ntype Queue struct\n")
	if err := os.Remove(filepath.Join(dir, "docs/api/c.txt")); err != nil {
		t.Fatal(err)
	}
	all := []string{
		"a/b of v0.1.0: func Changed(a int) error", "a/b of v0.1.0: func Moved[T any](a T)",
		"a/b of v0.1.0: method (q *Queue[K]) Add(key K)", "a/b of v0.1.0: type Queue, Size int",
		"a/b of v0.1.0: type Set map[string]int", "c of v0.1.0: func Last()",
	}
	if missing, err := unannounced(dir); err != nil || !slices.Equal(missing, all) {
		t.Errorf("%q, %v, want %q", missing, err, all)
	}
	write("CHANGELOG.md", heading+"\n- `a/b`: `Changed` has another argument, `Add` is gone: write `Set`.\n"+
		"- `c` is gone.\n"+release)
	want := []string{all[1], all[3]}
	if missing, err := unannounced(dir); err != nil || !slices.Equal(missing, want) {
		t.Errorf("%q, %v, want %q", missing, err, want)
	}
}
