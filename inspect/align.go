package inspect

import (
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// mostRows bounds the lines of one state, and longestLine each of them, in runes.
	mostRows, longestLine = 4000, 400
	// mostCells bounds the table of align, in elements.
	mostCells = 4 << 20
)

// row is a line of two texts. Of a row in which both are the same, Cached has it.
type row struct {
	Cached *string `json:"cached,omitempty"`
	Live   *string `json:"live,omitempty"`
	Same   bool    `json:"same,omitempty"`
}

// yamlLines returns fields as lines of YAML, and whether that is not all.
func yamlLines(fields map[string]any) (lines []string, cut bool) {
	if fields == nil {
		return nil, false
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		return []string{"# " + err.Error()}, false
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		if len(lines) == mostRows {
			return lines, true
		}
		if runes := []rune(line); len(runes) > longestLine {
			line, cut = string(runes[:longestLine])+"…", true
		}
		lines = append(lines, line)
	}
	return lines, cut
}

// align puts the lines of two texts side by side: those of a longest common subsequence in rows of their own, and
// between them the others, in pairs. If the differing part is too large for that, none of its lines count as common.
func align(left, right []string) []row {
	rows := []row{}
	start := 0
	for start < min(len(left), len(right)) && left[start] == right[start] {
		rows = append(rows, row{Cached: &left[start], Same: true})
		start++
	}
	end := 0
	for end < min(len(left), len(right))-start && left[len(left)-1-end] == right[len(right)-1-end] {
		end++
	}
	rows = append(rows, alignMiddle(left[start:len(left)-end], right[start:len(right)-end])...)
	for n := len(left) - end; n < len(left); n++ {
		rows = append(rows, row{Cached: &left[n], Same: true})
	}
	return rows
}

func alignMiddle(left, right []string) (rows []row) {
	if len(left)*len(right) > mostCells {
		return pairs(nil, left, right)
	}
	// common[l][r] is the length of a longest common subsequence of left[l:] and right[r:].
	common := make([][]int, len(left)+1)
	for l := range common {
		common[l] = make([]int, len(right)+1)
	}
	for l := len(left) - 1; l >= 0; l-- {
		for r := len(right) - 1; r >= 0; r-- {
			if left[l] == right[r] {
				common[l][r] = common[l+1][r+1] + 1
			} else {
				common[l][r] = max(common[l+1][r], common[l][r+1])
			}
		}
	}
	l, r, fromLeft, fromRight := 0, 0, 0, 0
	for l < len(left) && r < len(right) {
		switch {
		case left[l] == right[r]:
			rows = append(pairs(rows, left[fromLeft:l], right[fromRight:r]), row{Cached: &left[l], Same: true})
			l, r = l+1, r+1
			fromLeft, fromRight = l, r
		case common[l+1][r] >= common[l][r+1]:
			l++
		default:
			r++
		}
	}
	return pairs(rows, left[fromLeft:], right[fromRight:])
}

// pairs appends lines that are not common, side by side.
func pairs(rows []row, left, right []string) []row {
	for n := range max(len(left), len(right)) {
		var r row
		if n < len(left) {
			r.Cached = &left[n]
		}
		if n < len(right) {
			r.Live = &right[n]
		}
		rows = append(rows, r)
	}
	return rows
}
