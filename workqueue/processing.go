package workqueue

import "time"

// processing is the set of keys that workers have, in no particular order.
//
// Invariant: the element at i has entry.place == i. So a key is in the set at most once.
type processing[K comparable] []work[K]

// work is a run that a worker has.
type work[K comparable] struct {
	entry handle[K]
	// run describes this run, and entry.run the next one. The worker may read the causes in run until Done.
	run *run[K]
	// began is when the key was handed out; zero if the queue does not measure time.
	began time.Duration
}

func (p *processing[K]) insert(w work[K]) {
	w.entry.place = int32(len(*p))
	*p = append(*p, w)
}

// remove takes out the element at a place, and moves the last element into that place.
func (p *processing[K]) remove(place int32) work[K] {
	all := *p
	w, last := all[place], len(all)-1
	all[place] = all[last]
	all[place].entry.place = place
	all[last] = work[K]{}
	*p = all[:last]
	w.entry.place = none
	return w
}

// placeLocked returns the key's place in processing, or none. With few keys, a linear search is faster than the table.
func (q *Queue[K]) placeLocked(key K) int32 {
	if len(q.processing) <= 4 {
		for i := range q.processing {
			if q.processing[i].entry.key == key {
				return int32(i)
			}
		}
		return none
	}
	if e := q.entries.find(key); e != nil {
		return e.place
	}
	return none
}

// placeOfLocked is placeLocked for the key of an item, whose entry is found without a search.
func (q *Queue[K]) placeOfLocked(item *Item[K]) int32 {
	if item.id < q.entries.next {
		if e := q.entries.at(item.id); e.key == item.Key {
			return e.place
		}
	}
	return q.placeLocked(item.Key) // The caller has made the item.
}
