package localapi

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// step is one block of a script.
type step struct {
	line    int
	title   string
	method  string // of HTTP, or WATCH or END
	watch   string // the name of the watch
	target  string // resource or path, with its query
	code    int    // the status code that the answer must have; 0: any. Of END: the number of events
	closed  bool   // of END: the stream ends
	headers http.Header

	as, edit  string
	bare, raw bool
	protobuf  bool // send the body in protobuf
	retry     bool // until the status code is the stated one
	codeOnly  bool // compare nothing else
	body      string
}

// createNamespace is the step before those of a script.
func createNamespace(name string) *step {
	return &step{
		method: http.MethodPost, target: "namespaces", body: "metadata: {name: " + name + "}", headers: http.Header{},
	}
}

// isRequest reports whether a step is a request of its own.
func (s *step) isRequest() bool { return s.method != "END" }

// script is a file of steps.
type script struct {
	name  string // of the file, without its extension, and of the namespace
	text  string
	steps []*step
}

// patches are the content types of the methods that stand for PATCH.
var patches = map[string]string{
	"MERGE":     "application/merge-patch+json",
	"JSON":      "application/json-patch+json",
	"STRATEGIC": "application/strategic-merge-patch+json",
	"APPLY":     "application/apply-patch+yaml",
}

func readScripts(t *testing.T, dir string) []*script {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var scripts []*script
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseScript(strings.TrimSuffix(filepath.Base(file), ".txt"), string(text))
		if err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, s)
	}
	return scripts
}

func parseScript(name, text string) (*script, error) {
	s := &script{name: name, text: text}
	var block []string
	for n, line := range append(strings.Split(text, "\n"), "") {
		if strings.TrimSpace(line) != "" {
			block = append(block, line)
			continue
		}
		if step, err := parseStep(block, n-len(block)+1); err != nil {
			return nil, fmt.Errorf("%s.txt:%d: %w", name, n-len(block)+1, err)
		} else if step != nil {
			s.steps = append(s.steps, step)
		}
		block = nil
	}
	return s, nil
}

// rewrite stores the script with the codes that its steps have now.
func (s *script) rewrite(t *testing.T) {
	t.Helper()
	s.rewriteIn(t, "testdata")
}

// rewriteIn is rewrite for a script in a folder.
func (s *script) rewriteIn(t *testing.T, dir string) {
	t.Helper()
	lines := strings.Split(s.text, "\n")
	for _, st := range s.steps {
		request, answer, _ := strings.Cut(lines[st.line-1], " -> ")
		lines[st.line-1] = fmt.Sprintf("%s -> %d", request, st.code)
		if strings.HasSuffix(answer, " closed") {
			lines[st.line-1] += " closed"
		}
	}
	if err := os.WriteFile(filepath.Join(dir, s.name+".txt"), []byte(strings.Join(lines, "\n")),
		0o644); err != nil {
		t.Error(err)
	}
}

// parseStep reads a block whose first line is the given one. A block of comments alone is no step.
func parseStep(block []string, line int) (*step, error) {
	s := &step{headers: http.Header{}}
	for len(block) > 0 && strings.HasPrefix(block[0], "#") {
		s.title = strings.TrimSpace(s.title + " " + strings.TrimSpace(strings.TrimPrefix(block[0], "#")))
		block, line = block[1:], line+1
	}
	if len(block) == 0 {
		return nil, nil
	}
	s.line = line
	if err := s.parseRequest(block[0]); err != nil {
		return nil, err
	}
	block = block[1:]
	for len(block) > 0 && strings.HasPrefix(block[0], "@") {
		if err := s.parseDirective(block[0][1:]); err != nil {
			return nil, err
		}
		block = block[1:]
	}
	s.body = strings.Join(block, "\n")
	return s, nil
}

// parseRequest reads "METHOD target -> code", "WATCH name target -> code" or "END name -> count [closed]".
func (s *step) parseRequest(line string) error {
	request, answer, _ := strings.Cut(line, " -> ")
	s.method, s.target, _ = strings.Cut(request, " ")
	switch s.method {
	case "WATCH":
		s.watch, s.target, _ = strings.Cut(s.target, " ")
	case "END":
		s.watch, s.target = s.target, ""
		answer, s.closed = strings.CutSuffix(answer, " closed")
	}
	if answer == "" {
		return nil
	}
	code, err := strconv.Atoi(answer)
	if err != nil {
		return fmt.Errorf("%q: the answer is no number", line)
	}
	s.code = code
	return nil
}

func (s *step) parseDirective(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case strings.HasSuffix(word, ":"):
		s.headers.Add(strings.TrimSuffix(word, ":"), rest)
	case word == "as":
		s.as = rest
	case word == "edit":
		s.edit = rest
	case word == "bare":
		s.bare = true
	case word == "raw":
		s.raw = true
	case word == "protobuf":
		s.protobuf = true
	case word == "retry":
		s.retry = true
	case word == "codeonly":
		s.codeOnly = true
	default:
		return fmt.Errorf("@%s is no directive", line)
	}
	return nil
}

// String is the step as a script shows it.
func (s *step) String() string {
	var b strings.Builder
	if s.title != "" {
		fmt.Fprintf(&b, "# %s\n", s.title)
	}
	b.WriteString(s.method)
	if s.watch != "" {
		b.WriteString(" " + s.watch)
	}
	if s.target != "" {
		b.WriteString(" " + s.target)
	}
	for _, d := range []struct{ name, value string }{{"as", s.as}, {"edit", s.edit}} {
		if d.value != "" {
			fmt.Fprintf(&b, "\n@%s %s", d.name, d.value)
		}
	}
	for name, values := range s.headers {
		for _, v := range values {
			fmt.Fprintf(&b, "\n@%s: %s", name, v)
		}
	}
	if s.body != "" {
		b.WriteString("\n" + s.body)
	}
	return b.String()
}
