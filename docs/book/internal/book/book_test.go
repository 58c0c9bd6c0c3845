package book

import "testing"

// TestPipelineFigures: each chapter has the drawing of the pipeline with its own stage lit.
func TestPipelineFigures(t *testing.T) {
	Figure(t, "pipeline", Pipeline(Chapter{}))
	for _, c := range Chapters {
		if c.Number() > 0 {
			Figure(t, pipelineName(c), Pipeline(c))
		}
	}
}

// TestContents: the table of contents links every page that is written.
func TestContents(t *testing.T) { Block(t, "README", contents()) }
