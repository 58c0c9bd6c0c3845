package chapter04

// A newest is the first idea: the newest state of each key, and the order in which the keys came.
type newest struct {
	order  []string
	states map[string]change
}

func (q *newest) Push(c change) {
	if _, waits := q.states[c.key]; !waits {
		q.order = append(q.order, c.key)
	}
	q.states[c.key] = c
}

func (q *newest) Take() []change {
	if len(q.order) == 0 {
		return nil
	}
	key := q.order[0]
	c := q.states[key]
	q.order = q.order[1:]
	delete(q.states, key)
	return []change{c}
}
