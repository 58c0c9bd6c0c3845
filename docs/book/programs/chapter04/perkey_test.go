package chapter04

// A perKey is the second idea: all changes of a key, and the order in which the keys came. It is how client-go's
// DeltaFIFO works.
type perKey struct {
	order   []string
	changes map[string][]change
}

func (q *perKey) Push(c change) {
	if len(q.changes[c.key]) == 0 {
		q.order = append(q.order, c.key)
	}
	q.changes[c.key] = append(q.changes[c.key], c)
}

func (q *perKey) Take() []change {
	if len(q.order) == 0 {
		return nil
	}
	key := q.order[0]
	all := q.changes[key]
	q.order = q.order[1:]
	delete(q.changes, key)
	return all
}
