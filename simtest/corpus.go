package simtest

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// corpusFolder holds the runs with findings, a file for each test. A line is a token or, after "#", a comment.
const corpusFolder = "testdata/sim"

func (c *checker) corpusFile() string {
	return filepath.Join(corpusFolder, strings.ReplaceAll(c.t.Name(), "/", "_")+".txt")
}

// corpus tries the runs that had findings before.
func (c *checker) corpus() {
	c.t.Helper()
	data, err := os.ReadFile(c.corpusFile())
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		c.t.Error(err)
		return
	}
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		p, err := parsePlan(line)
		if err != nil {
			c.t.Errorf("%s:%d: %v", c.corpusFile(), n, err)
			continue
		}
		switch r := c.try(p, limits{}); {
		case len(r.findings) > 0:
			c.fail(r.findings[0], r)
		default:
			if misfit := c.misfit(r); misfit != "" {
				c.t.Logf("%s:%d: the token no longer fits the program or the scenario, and can be deleted: %s",
					c.corpusFile(), n, misfit)
			}
		}
	}
}

// keep adds a run with a finding to the corpus.
func (c *checker) keep(r *run) {
	c.t.Helper()
	token := r.plan.token()
	data, _ := os.ReadFile(c.corpusFile()) // If it cannot be read, the write below fails.
	if strings.Contains(string(data), token) {
		return
	}
	text, _, _ := strings.Cut(r.findings[0].Text, "\n") // A second line would not be a comment.
	entry := "# " + text + "\n" + token + "\n"
	err := os.MkdirAll(corpusFolder, 0o755)
	if err == nil {
		err = os.WriteFile(c.corpusFile(), append(data, entry...), 0o644)
	}
	if err != nil {
		c.t.Logf("simtest: the finding is not kept for later: %v", err)
	}
}
