package chapter04

// A log is the third idea: the changes as they come.
type log []change

func (q *log) Push(c change) { *q = append(*q, c) }

func (q *log) Take() []change {
	if len(*q) == 0 {
		return nil
	}
	first := (*q)[:1]
	*q = (*q)[1:]
	return first
}
