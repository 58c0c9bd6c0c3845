package differential

import (
	"fmt"
	"strings"
)

// sideBySide shows two transcripts next to each other, where they differ and a little around; "" when they are the
// same.
func sideBySide(left, right, leftName, rightName string) string {
	a, b := strings.Split(left, "\n"), strings.Split(right, "\n")
	rows := align(a, b)
	const around = 5
	show := make([]bool, len(rows))
	differs := false
	for i, r := range rows {
		if !r.same {
			differs = true
			for j := max(0, i-around); j <= min(len(rows)-1, i+around); j++ {
				show[j] = true
			}
		}
		if strings.HasPrefix(r.left, "== ") && r.same {
			show[i] = true
		}
	}
	if !differs {
		return ""
	}
	const width = 90
	var s strings.Builder
	fmt.Fprintf(&s, "  %-*s | %s\n", width, leftName, rightName)
	for i, r := range rows {
		if !show[i] {
			continue
		}
		mark := "  "
		if !r.same {
			mark = "≠ "
		}
		for _, half := range fold(r.left, r.right, width) {
			fmt.Fprintf(&s, "%s%-*s | %s\n", mark, width, half[0], half[1])
		}
	}
	return s.String()
}

// fold breaks two lines at width.
func fold(left, right string, width int) (rows [][2]string) {
	l, r := []rune(left), []rune(right)
	for {
		n, m := min(width, len(l)), min(width, len(r))
		rows = append(rows, [2]string{string(l[:n]), string(r[:m])})
		if l, r = l[n:], r[m:]; len(l) == 0 && len(r) == 0 {
			return rows
		}
	}
}

type row struct {
	left, right string
	same        bool
}

// align pairs the lines of two texts by their longest common subsequence.
func align(a, b []string) []row {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	x, y := a[start:], b[start:]
	const most = 3000 // lines: beyond it the table would not be worth its memory
	x, y = x[:min(len(x), most)], y[:min(len(y), most)]
	common := make([][]int32, len(x)+1)
	for i := range common {
		common[i] = make([]int32, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var rows []row
	for _, line := range a[:start] {
		rows = append(rows, row{line, line, true})
	}
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			rows = append(rows, row{x[i], y[j], true})
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			rows = append(rows, row{left: x[i]})
			i++
		default:
			rows = append(rows, row{right: y[j]})
			j++
		}
	}
	return rows
}
